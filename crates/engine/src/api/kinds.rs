//! Which kinds of objects an API server serves, and under which paths.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Deserialize;

use super::{
    Api, Pace,
    error::{Asked, Error},
};

/// A kind that is served.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Kind {
    kind: String,
    /// The word in paths.
    #[serde(rename = "name")]
    plural: String,
    namespaced: bool,
    #[serde(skip)]
    prefix: String,
}

impl Kind {
    /// The namespace that an object of this kind has.
    pub(super) fn namespace<'a>(&self, said: Option<&'a str>) -> Option<&'a str> {
        self.namespaced.then(|| said.unwrap_or("default"))
    }

    /// The path of an object.
    pub(super) fn path(&self, namespace: Option<&str>, name: &str) -> String {
        let Self { prefix, plural, .. } = self;
        let name = escaped(name);
        match self.namespace(namespace) {
            Some(namespace) => {
                format!("{prefix}/namespaces/{}/{plural}/{name}", escaped(namespace))
            }
            None => format!("{prefix}/{plural}/{name}"),
        }
    }
}

/// One word of a path: a name from a manifest must not lead elsewhere.
pub(super) fn escaped(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    for byte in word.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b':' => {
                text.push(char::from(byte));
            }
            // Only words of nothing but dots lead elsewhere.
            b'.' if word.bytes().any(|byte| byte != b'.') => text.push('.'),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// What was learned about kinds, by group and version.
#[derive(Debug, Default)]
pub(super) struct Kinds(Mutex<HashMap<String, Arc<[Kind]>>>);

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Kind>,
}

#[derive(Deserialize)]
struct Definitions {
    items: Vec<Definition>,
}

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
}

impl DefinitionSpec {
    fn defines(&self, api_version: &str, kind: &str) -> bool {
        let served = self.versions.iter().filter(|version| version.served);
        self.names.kind == kind
            && served
                .into_iter()
                .any(|version| format!("{}/{}", self.group, version.name) == api_version)
    }
}

impl Api {
    /// The kind, if it is served now.
    pub(super) async fn served_kind(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Kind>, Error> {
        let find = |kinds: &[Kind]| kinds.iter().find(|known| known.kind == kind).cloned();
        let known = {
            let kinds = self.kinds.0.lock().unwrap_or_else(PoisonError::into_inner);
            kinds.get(api_version).cloned()
        };
        if let Some(found) = known.as_deref().and_then(find) {
            return Ok(Some(found));
        }
        let prefix = match api_version.split_once('/') {
            Some((group, version)) => format!("/apis/{}/{}", escaped(group), escaped(version)),
            None => format!("/api/{}", escaped(api_version)),
        };
        let asked = Asked::of("list", format!("kinds of {api_version}"));
        let body = self.insist(async || {
            // That a group is not served is an answer, whatever the words.
            match self.ask(&asked, http::Method::GET, &prefix, None).await {
                Err(error) if error.is_not_found() => Ok(None),
                answer => answer.map(Some),
            }
        });
        let Some(body) = body.await? else {
            return Ok(None);
        };
        let list: ResourceList = super::client::read(&asked, &body)?;
        let served: Arc<[Kind]> = list
            .resources
            .into_iter()
            .filter(|kind| !kind.plural.contains('/'))
            .map(|kind| Kind {
                prefix: prefix.clone(),
                ..kind
            })
            .collect();
        let found = find(&served);
        let mut kinds = self.kinds.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.insert(api_version.to_owned(), served);
        Ok(found)
    }

    /// The kind. One whose definition is there is waited for until it is served.
    pub(super) async fn kind(
        &self,
        asked: &Asked,
        api_version: &str,
        kind: &str,
    ) -> Result<Kind, Error> {
        let mut pace = Pace::new(self.patience);
        let mut defined = false;
        loop {
            if let Some(served) = self.served_kind(api_version, kind).await? {
                return Ok(served);
            }
            defined = defined || self.is_defined(api_version, kind).await?;
            if !defined || !pace.rest().await {
                return Err(Error::UnknownKind {
                    asked: asked.boxed(),
                    kind: kind.into(),
                    api_version: api_version.into(),
                    waited: defined.then_some(self.patience),
                });
            }
        }
    }

    async fn is_defined(&self, api_version: &str, kind: &str) -> Result<bool, Error> {
        let asked = Asked::of("list", "CustomResourceDefinition");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let found: Option<Definitions> = self.find(&asked, path).await?;
        Ok(found.is_some_and(|found| {
            let mut items = found.items.iter();
            items.any(|definition| definition.spec.defines(api_version, kind))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(namespaced: bool) -> Kind {
        Kind {
            kind: "Nest".into(),
            plural: "nests".into(),
            namespaced,
            prefix: "/apis/example.org/v1".into(),
        }
    }

    #[test]
    fn paths() {
        let (inside, outside) = (kind(true), kind(false));
        let path = "/apis/example.org/v1/namespaces/default/nests/oak";
        assert_eq!(inside.path(None, "oak"), path);
        assert_eq!(
            outside.path(Some("ignored"), "system:oak.1"),
            "/apis/example.org/v1/nests/system:oak.1"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_name_leads_elsewhere(name in ".{1,20}|\\.{1,3}|[./?#%]{1,6}") {
            let path = kind(true).path(Some(&name), &name);
            let uri: http::Uri = path.parse().unwrap();
            proptest::prop_assert!(uri.query().is_none());
            let words: Vec<_> = uri.path().split('/').collect();
            proptest::prop_assert_eq!(words.len(), 8);
            proptest::prop_assert!(!words.contains(&".") && !words.contains(&".."));
        }
    }
}
