//! A list of scenarios, run against OpenSSH and against simulated hosts with the same results.
//!
//! Behaviour of only one of the two is tested in the other modules.

mod contact;
mod exec;
mod far;
mod files;
mod login;

use wmco_ssh::UploadProgress;

/// Ignores the progress.
const QUIET: fn(UploadProgress) = |_| {};

/// Returns incompressible bytes, the same for each seed (xorshift).
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend(next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Generates a test of each scenario for each server.
macro_rules! scenarios {
    ($($module:ident: $($scenario:ident),+ $(,)?;)+) => {
        mod openssh {
            $(mod $module { $(
                #[tokio::test]
                async fn $scenario() {
                    super::super::$module::$scenario::<crate::sshd::Sshd>().await;
                }
            )+ })+
        }

        mod sim_host {
            $(mod $module { $(
                #[tokio::test]
                async fn $scenario() {
                    super::super::$module::$scenario::<crate::backend::Sim>().await;
                }
            )+ })+
        }
    };
}

scenarios! {
    contact:
        an_agent_is_brought_run_and_taken_back,
        what_lay_there_before_us_is_not_run,
        an_agent_that_fails_is_taken_back_too,
        a_folder_that_is_there_is_not_used,
        an_agent_is_sent_whole_after_a_cut,
        folders_of_cut_contacts_go_and_those_of_others_stay;
    far:
        a_visit_takes_few_round_trips;
    login:
        each_kind_of_key_logs_in,
        strangers_are_refused,
        each_kind_of_host_key_is_pinned,
        of_several_host_keys_the_pinned_one_is_asked_for,
        another_host_key_is_a_mismatch;
    exec:
        without_an_agent_the_shell_says_so,
        an_agent_reports,
        a_failing_agent_is_no_agent,
        garbage_is_not_an_absent_agent,
        another_protocol_is_named,
        big_output_is_read,
        endless_output_is_cut_off,
        a_hanging_agent_times_out,
        a_cancelled_command_leaves_the_connection,
        a_cut_is_told,
        a_plan_is_carried_out,
        a_restart_is_expected,
        commands_and_uploads_share_a_connection;
    files:
        contents_arrive,
        an_upload_makes_no_folder,
        a_file_of_the_right_name_and_size_is_replaced,
        a_part_that_is_too_long_is_written_anew,
        a_cut_upload_goes_on,
        a_file_in_a_folders_place_is_named,
        a_protected_file_is_named,
        a_full_disk_is_told_and_cleared_up,
        leftovers_go,
        a_dropped_upload_ends_its_connection;
}
