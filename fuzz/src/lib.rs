//! What holds of every reading, whatever was read.

use hatchery_spec::reading::Reading;

/// There is a cluster or an error, and both can be shown.
pub fn check(reading: &Reading) {
    assert_eq!(reading.cluster.is_some(), !reading.diagnostics.has_errors());
    let shown = reading.diagnostics.render(false);
    assert!(reading.cluster.is_some() || !shown.is_empty());
    assert!(serde_json::to_string(&reading.diagnostics).is_ok());
    if let Some(cluster) = &reading.cluster {
        assert!(cluster.masters().len() > 0 && !cluster.machines().is_empty());
        assert!(serde_json::to_string(cluster).is_ok());
    }
}
