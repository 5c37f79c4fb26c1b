//! Registries of images as users write them: with a scheme or without.

/// With a scheme.
pub(crate) fn url(registry: &str) -> String {
    if registry.contains("://") {
        registry.to_owned()
    } else {
        format!("https://{registry}")
    }
}

/// The registry without a scheme.
pub(crate) fn bare(registry: &str) -> &str {
    let host = registry
        .split_once("://")
        .map_or(registry, |(_, host)| host);
    host.trim_end_matches('/')
}
