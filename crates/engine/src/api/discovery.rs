//! Which kinds of objects an API server serves, and how objects of them are reached.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    api::{DynamicObject, ListParams},
    core::GroupVersion,
    discovery::{ApiResource, Scope, pinned_group},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    Api,
    backoff::Pauses,
    error::{Error, Operation, if_found},
};

/// A kind that is served.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    resource: ApiResource,
    is_namespaced: bool,
}

impl Kind {
    /// The namespace that an object of this kind has.
    pub(super) fn namespace<'a>(&self, given: Option<&'a str>) -> Option<&'a str> {
        self.is_namespaced.then(|| given.unwrap_or("default"))
    }

    /// All objects of the kind, or those of a namespace.
    pub(super) fn objects(
        &self,
        client: kube::Client,
        namespace: Option<&str>,
    ) -> kube::Api<DynamicObject> {
        match self.namespace(namespace) {
            Some(namespace) => {
                kube::Api::namespaced_with(client, &path_segment(namespace), &self.resource)
            }
            None => kube::Api::all_with(client, &self.resource),
        }
    }
}

/// A name as kube puts it into a path: one from a manifest must not lead elsewhere.
pub(super) fn path_segment(name: &str) -> String {
    // Dots too: a segment of nothing but dots leads elsewhere.
    const SAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b':');
    utf8_percent_encode(name, SAFE).to_string()
}

/// What was learned about kinds, by `apiVersion` and `kind`.
#[derive(Debug, Default)]
pub(super) struct Kinds(Mutex<HashMap<(String, String), Kind>>);

impl Kinds {
    fn get(&self, api_version: &str, kind: &str) -> Option<Kind> {
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.get(&(api_version.into(), kind.into())).cloned()
    }

    fn add(&self, api_version: &str, resource: ApiResource, is_namespaced: bool) {
        let key = (api_version.to_owned(), resource.kind.clone());
        let kind = Kind {
            resource,
            is_namespaced,
        };
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.entry(key).or_insert(kind);
    }
}

impl Api {
    /// The kind, if it is served now.
    pub(super) async fn served_kind(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Kind>, Error> {
        if let Some(known) = self.kinds.get(api_version, kind) {
            return Ok(Some(known));
        }
        let Some(version) = group_version(api_version) else {
            return Ok(None);
        };
        let operation = Operation::new("list", format!("kinds of {api_version}"));
        // That a group is not served is an answer, whatever the words.
        let group = self.retry(async || {
            let group = pinned_group(&self.client, &version);
            if_found(self.request_once(&operation, group).await)
        });
        let Some(group) = group.await? else {
            return Ok(None);
        };
        for (resource, capabilities) in group.versioned_resources(&version.version) {
            let is_namespaced = capabilities.scope == Scope::Namespaced;
            self.kinds.add(api_version, resource, is_namespaced);
        }
        Ok(self.kinds.get(api_version, kind))
    }

    /// The kind. One whose definition is there is waited for until it is served.
    pub(super) async fn kind(
        &self,
        operation: &Operation,
        api_version: &str,
        kind: &str,
    ) -> Result<Kind, Error> {
        let mut pauses = Pauses::new(self.retry_timeout);
        let mut is_defined = false;
        loop {
            if let Some(served) = self.served_kind(api_version, kind).await? {
                return Ok(served);
            }
            is_defined = is_defined || self.is_defined(api_version, kind).await?;
            if !is_defined || !pauses.pause().await {
                return Err(Error::UnknownKind {
                    operation: Box::new(operation.clone()),
                    kind: kind.into(),
                    api_version: api_version.into(),
                    waited: is_defined.then_some(self.retry_timeout),
                });
            }
        }
    }

    async fn is_defined(&self, api_version: &str, kind: &str) -> Result<bool, Error> {
        let operation = Operation::new("list", "CustomResourceDefinition");
        let definitions = kube::Api::<CustomResourceDefinition>::all(self.client());
        let everything = ListParams::default();
        let listed = self.request(&operation, || definitions.list(&everything));
        let listed = if_found(listed.await)?;
        Ok(listed.into_iter().flatten().any(|definition| {
            let spec = definition.spec;
            let mut served = spec.versions.iter().filter(|version| version.served);
            spec.names.kind == kind
                && served.any(|version| format!("{}/{}", spec.group, version.name) == api_version)
        }))
    }
}

/// `None` for one that no API server can serve, and that could lead elsewhere in a path.
fn group_version(api_version: &str) -> Option<GroupVersion> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let mut parts = api_version.splitn(2, '/');
    parts
        .all(|part| part.chars().all(is_plain) && part.starts_with(char::is_alphanumeric))
        .then(|| api_version.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::*;

    #[test]
    fn versions_that_cannot_be_served_are_not_asked_for() {
        let version = group_version("birds.example.org/v1").unwrap();
        assert_eq!(version, GroupVersion::gv("birds.example.org", "v1"));
        assert_eq!(group_version("v1").unwrap(), GroupVersion::gv("", "v1"));
        for odd in [
            "", "a/b/c", "/v1", "a/", "v1?x=y", "../v1", "a/..", "a b/v1", "ä/v1",
        ] {
            assert!(group_version(odd).is_none(), "{odd}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_name_leads_elsewhere(name in ".{1,20}|\\.{1,3}|[./?#%]{1,6}") {
            let resource = ApiResource {
                group: "example.org".into(),
                version: "v1".into(),
                api_version: "example.org/v1".into(),
                kind: "Nest".into(),
                plural: "nests".into(),
            };
            let namespace = path_segment(&name);
            let path = DynamicObject::url_path(&resource, Some(&namespace));
            let request = kube::core::Request::new(path).get(&path_segment(&name), &Default::default());
            let uri = request.unwrap().uri().clone();
            proptest::prop_assert!(uri.query().is_none());
            let words: Vec<_> = uri.path().split('/').collect();
            proptest::prop_assert_eq!(words.len(), 8);
            proptest::prop_assert!(!words.contains(&".") && !words.contains(&".."));
        }
    }
}
