//! Manifests made so, or asked what they would change: server-side apply of any kinds.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use http::Method;
use kube::core::DynamicObject;
use serde_json::Value;

use super::{
    Api, FIELD_MANAGER,
    client::read,
    difference::changed_fields,
    error::{Asked, Error},
    kinds::Kind,
    protocol,
};

/// So many objects are looked at ahead of the one that is applied.
const AHEAD: usize = 3;

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
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// What became of it.
    pub effect: Effect,
}

/// An object on its way.
struct Wanted<'a> {
    object: &'a DynamicObject,
    asked: Asked,
    api_version: &'a str,
    name: &'a str,
}

impl<'a> Wanted<'a> {
    fn of(object: &'a DynamicObject) -> Result<Self, Error> {
        let mut asked = Asked::of("apply", "an object");
        asked.namespace = object.metadata.namespace.clone();
        asked.name = object.metadata.name.clone();
        let wrong = |asked: &Asked, reason: &str| Error::Object {
            asked: asked.boxed(),
            reason: reason.into(),
        };
        let Some(types) = &object.types else {
            return Err(wrong(&asked, "it has no apiVersion and kind"));
        };
        asked.kind.clone_from(&types.kind);
        match object.metadata.name.as_deref() {
            None | Some("") => Err(wrong(&asked, "it has no name")),
            Some(name) => Ok(Self {
                object,
                asked,
                api_version: &types.api_version,
                name,
            }),
        }
    }

    /// Others live in it, or are of it.
    fn goes_first(&self) -> bool {
        let group = self
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        matches!(
            (group, self.asked.kind.as_str()),
            ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }

    fn applied(self, namespace: Option<&str>, effect: Effect) -> Applied {
        Applied {
            kind: self.asked.kind,
            namespace: namespace.map(Into::into),
            name: self.name.into(),
            effect,
        }
    }
}

impl Api {
    /// Makes objects as they are given, namespaces and definitions of kinds first, the rest in the order given, and
    /// tells of each in that order. A kind that was defined a moment ago is waited for. With `force`, fields that
    /// others own become ours; without, they are an error.
    ///
    /// # Errors
    /// The first object that fails ends it. Those before it stay.
    pub async fn apply(
        &self,
        manifests: &[DynamicObject],
        force: bool,
    ) -> Result<Vec<Applied>, Error> {
        let (first, rest) = in_order(manifests)?;
        let mut done = Vec::with_capacity(manifests.len());
        for batch in [first, rest] {
            // All looks first: one that is begun and not gone on with would keep its connection from the others.
            let looked: Vec<_> = stream::iter(batch)
                .map(|wanted| async {
                    let kind = &wanted.asked.kind;
                    let kind = self.kind(&wanted.asked, wanted.api_version, kind).await?;
                    let before = self.before(&wanted, &kind).await?;
                    Ok((wanted, kind, before))
                })
                .buffered(AHEAD)
                .collect()
                .await;
            for looked in looked {
                let (wanted, kind, before) = looked?;
                let after = self.patch(&wanted, &kind, force, false).await?;
                let namespace = kind.namespace(wanted.object.metadata.namespace.as_deref());
                done.push(wanted.applied(namespace, effect(before.as_ref(), &after)));
            }
        }
        Ok(done)
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
        let (first, rest) = in_order(manifests)?;
        let upcoming = Upcoming::of(&first);
        let questions = first.into_iter().chain(rest);
        let answers: Vec<_> = stream::iter(questions)
            .map(|wanted| self.would_apply_one(wanted, &upcoming, force))
            .buffered(AHEAD)
            .collect()
            .await;
        answers.into_iter().collect()
    }

    async fn would_apply_one(
        &self,
        wanted: Wanted<'_>,
        upcoming: &Upcoming,
        force: bool,
    ) -> Result<Applied, Error> {
        let said = wanted.object.metadata.namespace.as_deref();
        let (api_version, kind) = (wanted.api_version, &wanted.asked.kind);
        let served = match upcoming.kinds.contains(&key(api_version, kind)) {
            true => self.served_kind(api_version, kind).await?,
            false => Some(self.kind(&wanted.asked, api_version, kind).await?),
        };
        let Some(kind) = served else {
            return Ok(wanted.applied(said, Effect::Created));
        };
        let namespace = kind.namespace(said);
        let before = self.before(&wanted, &kind).await?;
        let after = match self.patch(&wanted, &kind, force, true).await {
            // Its namespace is made before it.
            Err(error)
                if error.is_not_found()
                    && before.is_none()
                    && namespace.is_some_and(|name| upcoming.namespaces.contains(name)) =>
            {
                Value::Null
            }
            after => after?,
        };
        Ok(wanted.applied(namespace, effect(before.as_ref(), &after)))
    }

    async fn before(&self, wanted: &Wanted<'_>, kind: &Kind) -> Result<Option<Value>, Error> {
        let namespace = wanted.object.metadata.namespace.as_deref();
        let asked = Asked {
            method: "get",
            ..wanted.asked.clone()
        };
        self.find(&asked, &kind.path(namespace, wanted.name)).await
    }

    async fn patch(
        &self,
        wanted: &Wanted<'_>,
        kind: &Kind,
        force: bool,
        dry_run: bool,
    ) -> Result<Value, Error> {
        let namespace = wanted.object.metadata.namespace.as_deref();
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}&force={force}{}",
            kind.path(namespace, wanted.name),
            if dry_run { "&dryRun=All" } else { "" }
        );
        let content = protocol::said(wanted.object).to_string().into_bytes();
        let body = self.insist(async || {
            // JSON is YAML, and the only type that every version takes.
            let content = ("application/apply-patch+yaml", content.clone());
            self.ask(&wanted.asked, Method::PATCH, &path, Some(content))
                .await
        });
        read(&wanted.asked, &body.await?)
    }
}

/// What goes first, and the rest.
fn in_order(manifests: &[DynamicObject]) -> Result<(Vec<Wanted<'_>>, Vec<Wanted<'_>>), Error> {
    let wanted: Result<Vec<_>, _> = manifests.iter().map(Wanted::of).collect();
    Ok(wanted?.into_iter().partition(Wanted::goes_first))
}

fn effect(before: Option<&Value>, after: &Value) -> Effect {
    let Some(before) = before else {
        return Effect::Created;
    };
    // Not by resourceVersion: a dry run keeps it, and our name among the owners makes a new one.
    let fields = changed_fields(before, after);
    match fields.is_empty() {
        true => Effect::Unchanged,
        false => Effect::Changed { fields },
    }
}

fn key(api_version: &str, kind: &str) -> (String, String) {
    (api_version.into(), kind.into())
}

/// What is not there yet where nothing is done, and would be.
struct Upcoming {
    namespaces: BTreeSet<String>,
    kinds: BTreeSet<(String, String)>,
}

impl Upcoming {
    fn of(first: &[Wanted<'_>]) -> Self {
        let (namespaces, definitions): (Vec<_>, Vec<_>) = first
            .iter()
            .partition(|wanted| wanted.asked.kind == "Namespace");
        let kinds = definitions.iter().flat_map(|wanted| {
            let spec = &wanted.object.data["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
            let versions = spec["versions"].as_array().into_iter().flatten();
            versions
                .map(move |version| key(&format!("{group}/{}", text(&version["name"])), &kind))
                .collect::<Vec<_>>()
        });
        Self {
            kinds: kinds.collect(),
            namespaces: namespaces.iter().map(|wanted| wanted.name.into()).collect(),
        }
    }
}
