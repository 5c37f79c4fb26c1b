//! Text of systemd's unit files.

/// A systemd service, to be rendered as a unit file.
#[derive(Clone, Debug)]
pub(crate) struct Service<'a> {
    pub(crate) description: &'a str,
    /// Whether it tells systemd when it is up.
    pub(crate) notifies: bool,
    /// Units that are up before it, when they are there at all.
    pub(crate) after: &'a [&'a str],
    /// Which programs these are, where that is known: other ones make another file, and that restarts the service.
    pub(crate) stamp: Option<String>,
    /// With its flags, as [`crate::arguments::Flags::command`] gives it.
    pub(crate) command: String,
    /// Lines of the section `[Service]` beside the usual ones.
    pub(crate) lines: Vec<String>,
}

impl Service<'_> {
    pub(crate) fn render(&self) -> String {
        let mut after = vec!["network-online.target"];
        after.extend(self.after);
        let kind = if self.notifies { "notify" } else { "simple" };
        let mut lines = vec![
            "[Unit]".to_owned(),
            format!("Description={}", self.description),
            "Wants=network-online.target".into(),
            format!("After={}", after.join(" ")),
            // It comes back however often it failed.
            "StartLimitIntervalSec=0".into(),
            String::new(),
            "[Service]".into(),
            format!("Type={kind}"),
            format!("ExecStart={}", self.command),
            "Restart=always".into(),
            "RestartSec=2".into(),
        ];
        lines.extend(self.stamp.iter().map(|stamp| format!("# program {stamp}")));
        lines.extend(self.lines.iter().cloned());
        lines.extend(["", "[Install]", "WantedBy=multi-user.target", ""].map(str::to_owned));
        lines.join("\n")
    }
}
