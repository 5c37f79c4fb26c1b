use super::*;

fn ours(server: &str) -> SecretString {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: {server}
users:
- name: lab-admin
  user:
    token: '0123'
contexts:
- name: admin@lab
  context: {{cluster: lab, user: lab-admin}}
current-context: admin@lab
"
    )
    .into()
}

fn merged(there: Option<&str>, server: &str) -> Value {
    let text = merge(there, &ours(server)).unwrap();
    serde_saphyr::from_str(text.expose_secret()).unwrap()
}

#[test]
fn a_file_that_was_not_there_is_ours() {
    for there in [None, Some(""), Some(" \n")] {
        let merged = merged(there, "https://a:6443");
        assert_eq!(merged["kind"], "Config");
        assert_eq!(merged["clusters"][0]["cluster"]["server"], "https://a:6443");
        assert_eq!(merged["users"][0]["user"]["token"], "0123");
        assert_eq!(merged["current-context"], "admin@lab");
    }
}

#[test]
fn entries_of_others_stay_as_they_are() {
    let there = "{apiVersion: v1, kind: Config, preferences: {colors: true}, current-context: x, \
        clusters: [{name: x, cluster: {server: 'https://x', odd-key: 1}}], users: null, \
        contexts: [{name: x, context: {cluster: x, user: y, namespace: z}}]}";
    let merged = merged(Some(there), "https://a:6443");
    assert_eq!(merged["preferences"]["colors"], true);
    assert_eq!(merged["clusters"][0]["cluster"]["odd-key"], 1);
    assert_eq!(merged["contexts"][0]["context"]["namespace"], "z");
    assert_eq!(merged["clusters"].as_array().unwrap().len(), 2);
    assert_eq!(merged["users"].as_array().unwrap().len(), 1);
}

#[test]
fn a_token_stays_a_text_for_every_reader_of_yaml() {
    let there = "users: [{name: 'on', user: {token: '12:30:45'}}]";
    let text = merge(Some(there), &ours("https://a")).unwrap();
    for quoted in ["'on'", "'12:30:45'"] {
        assert!(text.expose_secret().contains(quoted), "{quoted}");
    }
}

#[test]
fn our_own_entries_are_replaced() {
    let once = merge(None, &ours("https://a:6443")).unwrap();
    let twice = merged(Some(once.expose_secret()), "https://b:6443");
    assert_eq!(twice["clusters"].as_array().unwrap().len(), 1);
    assert_eq!(twice["clusters"][0]["cluster"]["server"], "https://b:6443");
    let same = merge(Some(once.expose_secret()), &ours("https://a:6443")).unwrap();
    assert_eq!(same.expose_secret(), once.expose_secret());
}

#[test]
fn somebody_elses_entry_of_the_same_name_is_left_alone() {
    let there = "users: [{name: lab-admin, user: {token: secret-word}}]";
    let error = merge(Some(there), &ours("https://a")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it has a user with the name lab-admin that Hatchery did not write"
    );
    assert!(error.remedy().is_some());
}

#[test]
fn what_is_no_kubeconfig_is_refused_without_its_words() {
    for there in [
        "[1]",
        "token: [secret-word",
        "clusters: secret-word",
        "users: [{user: {}}]",
    ] {
        let error = merge(Some(there), &ours("https://a"))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("it is not a kubeconfig"), "{error}");
        assert!(!error.contains("secret-word"), "{error}");
    }
}
