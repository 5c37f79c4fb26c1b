//! Manifests applied, or asked what they would change: server-side apply of any kinds.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{DynamicObject, Patch, PatchParams, TypeMeta};
use serde_json::json;

use super::{
    Api, FIELD_MANAGER,
    difference::changed_fields,
    discovery::{Kind, path_segment},
    error::{Error, Operation, if_found},
    port_protocol::with_protocols,
};

/// How many objects are looked at concurrently.
const CONCURRENT: usize = 3;

/// What became, or would become, of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was not there.
    Created,
    /// It was another one.
    Changed {
        /// The fields that differ; the first of many.
        fields: Vec<String>,
    },
    /// It was so already.
    Unchanged,
}

/// An object of a manifest, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// For example `Deployment`.
    pub kind: String,
    /// The object's namespace, where it has one.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
    /// What became of it.
    pub effect: Effect,
}

/// An object to apply, with what it has to say of itself.
struct Wanted<'a> {
    object: &'a DynamicObject,
    types: &'a TypeMeta,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> Wanted<'a> {
    fn new(object: &'a DynamicObject) -> Result<Self, Error> {
        let namespace = object.metadata.namespace.as_deref();
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let Some(types) = &object.types else {
            let operation = Operation::on("apply", "an object", namespace, name);
            return Err(Error::invalid(&operation, "it has no apiVersion and kind"));
        };
        if name.is_empty() {
            let operation = Operation::new("apply", &types.kind);
            return Err(Error::invalid(&operation, "it has no name"));
        }
        Ok(Self {
            object,
            types,
            namespace,
            name,
        })
    }

    fn operation(&self, verb: &'static str) -> Operation {
        Operation::on(verb, &self.types.kind, self.namespace, self.name)
    }

    fn is_namespace(&self) -> bool {
        (self.types.api_version.as_str(), self.types.kind.as_str()) == ("v1", "Namespace")
    }

    fn is_definition(&self) -> bool {
        self.types.kind == "CustomResourceDefinition"
            && self.types.api_version.starts_with("apiextensions.k8s.io/")
    }

    /// Whether it defines the kind of another object.
    fn defines(&self, other: &TypeMeta) -> bool {
        let spec = &self.object.data["spec"];
        let group = spec["group"].as_str().unwrap_or_default();
        let versions = spec["versions"].as_array().into_iter().flatten();
        self.is_definition()
            && spec["names"]["kind"] == *other.kind
            && versions
                .filter_map(|version| version["name"].as_str())
                .any(|version| format!("{group}/{version}") == other.api_version)
    }
}

impl Api {
    /// Makes objects as they are given, namespaces and definitions of kinds first, the rest in the order given, and
    /// calls back for each in that order. A kind that was defined a moment ago is waited for. With `force`, fields that
    /// others own become ours; without, they are an error.
    ///
    /// # Errors
    /// The first object that fails ends it. Those before it stay.
    pub async fn apply(
        &self,
        manifests: &[DynamicObject],
        force: bool,
    ) -> Result<Vec<Applied>, Error> {
        self.apply_all(manifests, force, false).await
    }

    /// What [`Api::apply`] would do, as the API server sees it. Changes nothing.
    ///
    /// # Errors
    /// The first object that would fail.
    pub async fn would_apply(
        &self,
        manifests: &[DynamicObject],
        force: bool,
    ) -> Result<Vec<Applied>, Error> {
        self.apply_all(manifests, force, true).await
    }

    async fn apply_all(
        &self,
        manifests: &[DynamicObject],
        force: bool,
        dry_run: bool,
    ) -> Result<Vec<Applied>, Error> {
        let parameters = PatchParams {
            force,
            dry_run,
            ..PatchParams::apply(FIELD_MANAGER)
        };
        let wanted: Result<Vec<_>, _> = manifests.iter().map(Wanted::new).collect();
        // Others live in these, or are of them.
        let (first, rest): (Vec<_>, Vec<_>) = wanted?
            .into_iter()
            .partition(|wanted| wanted.is_namespace() || wanted.is_definition());
        // What a dry run does not make, and would be there.
        let (upcoming, concurrent): (&[_], _) = match dry_run {
            true => (&first, CONCURRENT),
            false => (&[], 1),
        };
        let mut applied = Vec::with_capacity(manifests.len());
        for batch in [&first, &rest] {
            // All are looked at first: a request that is begun and not gone on with would keep its connection from the
            // others.
            let looks: Vec<_> = batch
                .iter()
                .map(|wanted| self.look(wanted, upcoming))
                .collect();
            let looks: Vec<_> = stream::iter(looks).buffered(CONCURRENT).collect().await;
            let patches = batch.iter().zip(looks);
            let patches: Vec<_> = patches
                .map(|(wanted, look)| self.apply_one(wanted, look, &parameters, upcoming))
                .collect();
            let patches = stream::iter(patches).buffered(concurrent);
            applied.extend(patches.try_collect::<Vec<_>>().await?);
        }
        Ok(applied)
    }

    /// An object's kind, where it is served, and the object as it is.
    async fn look(&self, wanted: &Wanted<'_>, upcoming: &[Wanted<'_>]) -> Result<Look, Error> {
        let TypeMeta { api_version, kind } = wanted.types;
        let kind = match upcoming.iter().any(|one| one.defines(wanted.types)) {
            true => self.served_kind(api_version, kind).await?,
            false => {
                let operation = wanted.operation("apply");
                Some(self.kind(&operation, api_version, kind).await?)
            }
        };
        let Some(kind) = kind else {
            return Ok((None, None));
        };
        let objects = kind.objects(self.client(), wanted.namespace);
        let (operation, name) = (wanted.operation("get"), path_segment(wanted.name));
        let before = self.request(&operation, || objects.get(&name)).await;
        Ok((Some(kind), if_found(before)?))
    }

    async fn apply_one(
        &self,
        wanted: &Wanted<'_>,
        look: Result<Look, Error>,
        parameters: &PatchParams,
        upcoming: &[Wanted<'_>],
    ) -> Result<Applied, Error> {
        let (kind, before) = look?;
        let mut applied = Applied {
            kind: wanted.types.kind.clone(),
            namespace: wanted.namespace.map(Into::into),
            name: wanted.name.into(),
            effect: Effect::Created,
        };
        let Some(kind) = kind else {
            return Ok(applied);
        };
        let namespace = kind.namespace(wanted.namespace);
        applied.namespace = namespace.map(Into::into);
        let objects = kind.objects(self.client(), namespace);
        let (operation, name) = (wanted.operation("apply"), path_segment(wanted.name));
        let patch = Patch::Apply(with_protocols(wanted.object));
        let after = self.request(&operation, || objects.patch(&name, parameters, &patch));
        let is_upcoming = |space| {
            upcoming
                .iter()
                .any(|one| one.is_namespace() && one.name == space)
        };
        match (before, after.await) {
            (None, Err(error)) if error.is_not_found() && namespace.is_some_and(is_upcoming) => {}
            (None, after) => drop(after?),
            (Some(before), after) => applied.effect = effect(&before, &after?),
        }
        Ok(applied)
    }
}

type Look = (Option<Kind>, Option<DynamicObject>);

fn effect(before: &DynamicObject, after: &DynamicObject) -> Effect {
    // Not by resourceVersion: a dry run keeps it, and our name among the owners makes a new one.
    let fields = changed_fields(&json!(before), &json!(after));
    match fields.is_empty() {
        true => Effect::Unchanged,
        false => Effect::Changed { fields },
    }
}
