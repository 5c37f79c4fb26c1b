//! eggo's flags for scripts that run before and after a command.

use std::{collections::BTreeSet, process::ExitCode};

use hatchery_engine::{
    api_access::Machines,
    command_hook::{CommandHook, HookFlag, Moment, Operator},
};
use hatchery_host::{machine, transport};
use hatchery_spec::{Cluster, value::Name};

use crate::{
    interrupt::INTERRUPTED,
    output::{Output, Refused},
};

#[derive(clap::Args)]
#[command(next_help_heading = "Scripts of your own, run as root on every machine of a role")]
pub(crate) struct Flags {
    /// Run a script, or all scripts of a directory, before anything else [role: master, worker, etcd or loadbalance;
    /// default: master; of join and delete: any]
    #[arg(long, value_name = "PATH[,ROLE]")]
    cluster_prehook: Option<String>,
    /// The same when all else is done
    #[arg(long, value_name = "PATH[,ROLE]")]
    cluster_posthook: Option<String>,
    /// As --cluster-prehook, and after it
    #[arg(long, value_name = "PATH[,ROLE]")]
    prehook: Option<String>,
    /// As --cluster-posthook, and before it
    #[arg(long, value_name = "PATH[,ROLE]")]
    posthook: Option<String>,
}

/// The scripts, read and found good.
pub(crate) struct Hooks {
    operator: Operator,
    before: Vec<CommandHook>,
    after: Vec<CommandHook>,
}

/// Says that a command was given up while scripts ran.
pub(crate) fn interrupted() -> ExitCode {
    eprintln!(
        "\nstopped; nothing was changed, but for what your scripts did and still do on the machines"
    );
    ExitCode::from(INTERRUPTED)
}

/// Says the same of scripts that come last.
pub(crate) fn interrupted_afterwards() -> ExitCode {
    eprintln!("\nstopped; scripts of yours may still run on the machines");
    ExitCode::from(INTERRUPTED)
}

/// Where scripts run.
pub(crate) struct Ground<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) machines: &'a Machines,
    /// Machines that are left out.
    pub(crate) without: &'a BTreeSet<Name>,
    pub(crate) parallel: usize,
}

impl Flags {
    /// Reads every script before anything is touched.
    pub(crate) fn load(&self, operator: Operator, output: &Output) -> Result<Hooks, Refused> {
        let load = |name: &str, text: &Option<String>| -> Result<Option<CommandHook>, Refused> {
            // Scripts around eggo hand over what they have, which may be nothing.
            let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else {
                return Ok(None);
            };
            let flag = text.parse().and_then(|flag: HookFlag| flag.load());
            let hook = flag.map_err(|problem| {
                let remedy = problem.remedy.clone();
                Refused::new(format!("{name}: {problem}")).remedy(remedy)
            })?;
            for skipped in &hook.skipped {
                let remedy = "only what lies directly in the directory and fits is run";
                output.warn(&format!("{name}: not run: {skipped}"), remedy);
            }
            Ok(Some(hook))
        };
        let before = [
            load("--cluster-prehook", &self.cluster_prehook)?,
            load("--prehook", &self.prehook)?,
        ];
        let after = [
            load("--posthook", &self.posthook)?,
            load("--cluster-posthook", &self.cluster_posthook)?,
        ];
        Ok(Hooks {
            operator,
            before: before.into_iter().flatten().collect(),
            after: after.into_iter().flatten().collect(),
        })
    }
}

impl Hooks {
    /// Runs those that come first. Gives the exit code when one of them failed: nothing else is done then.
    pub(crate) async fn before(&self, ground: &Ground<'_>, output: &Output) -> Option<ExitCode> {
        let good = self.run(&self.before, Moment::Before, ground, output).await;
        if good {
            return None;
        }
        eprintln!("\nnothing was changed, but for what these scripts did");
        Some(ExitCode::FAILURE)
    }

    /// Runs those that come last. Gives the exit code when one of them failed.
    pub(crate) async fn after(&self, ground: &Ground<'_>, output: &Output) -> Option<ExitCode> {
        let good = self.run(&self.after, Moment::After, ground, output).await;
        (!good).then(|| ExitCode::from(3))
    }

    /// Whether all went well.
    async fn run(
        &self,
        hooks: &[CommandHook],
        moment: Moment,
        ground: &Ground<'_>,
        output: &Output,
    ) -> bool {
        for hook in hooks {
            let running = hook.run(
                ground.cluster,
                ground.machines,
                ground.without,
                self.operator,
                moment,
                ground.parallel,
            );
            let mut good = true;
            for error in running.await {
                // A machine that is gone for good, or that another cluster has by now, must not keep a cluster from
                // being removed.
                let is_left = is_unanswered(&error) || matches!(error, machine::Error::Held { .. });
                if is_left && self.operator == Operator::Cleanup {
                    output.warn(&error.to_string(), "no script was run there");
                    continue;
                }
                let (begin, end) = output.bold("31");
                eprintln!("{begin}error{end}: {error}");
                good = false;
            }
            if !good {
                return false;
            }
        }
        true
    }
}

/// Whether the machine did not let anybody in, so that nothing was done there.
fn is_unanswered(error: &machine::Error) -> bool {
    use transport::Error::{Deadline, Handshake, Unreachable};
    let machine::Error::Transport { source } = error else {
        return false;
    };
    matches!(
        source,
        Unreachable { .. } | Handshake { .. } | Deadline { .. }
    )
}
