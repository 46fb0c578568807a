"""What a pass over traces is required to do, and the tests that show it, by their names in this folder's files.

Requirements are numbered as they are discussed: R is what there is, B is how it behaves.
"""

from __future__ import annotations

from typing import NamedTuple


class Requirement(NamedTuple):
    """One requirement in a sentence, and what shows that it holds: tests, as `file::test` without `test_tracepass_`."""

    says: str
    tests: tuple[str, ...]


REQUIREMENTS = {
    "R1": Requirement(
        "Any log becomes conversations of turns and spans, with users, times, releases, tool calls and errors.",
        (
            "transforms::test_R1_a_trace_has_its_times_user_release_and_errors",
            "sources::test_R1_a_log_that_a_reader_knows_feeds_a_plan_as_often_as_it_is_asked",
            "sources::test_R1_a_frame_with_a_row_for_each_turn_is_a_source",
            "sources::test_R1_a_table_of_spans_becomes_conversations",
            "sources::test_R1_columns_that_cannot_be_mapped_are_refused",
        ),
    ),
    "R2": Requirement(
        "A Reflex turns texts into labels with scores, at once or awaited, here or behind a service.",
        (
            "transports::test_r2_every_transport_keeps_the_protocol",
            "transports::test_r2_local_classifiers_are_asked_together_in_threads_under_their_aliases",
            "transports::test_r2_a_text_that_breaks_a_local_classifier_fails_alone",
            "reflexes::test_R2_a_trained_classifier_is_a_reflex",
            "reflexes::test_R2_a_classifier_behind_an_api_is_awaited",
            "reflexes::test_R2_a_model_of_the_service_is_a_reflex",
            "reflexes::test_R2_an_evaluator_is_a_reflex_and_its_failures_are_those_of_one_text",
            "heuristics::test_R2_every_heuristic_is_a_reflex_that_says_what_it_is",
            "claims::test_r2_two_processes_that_resume_a_pass_at_once_read_nothing_twice",
        ),
    ),
    "R3": Requirement(
        "A Signal is a Reflex with a transform, thresholds, the labels that it fires on, and where its results go.",
        (
            "signals::test_R3_a_threshold_stands_in_for_what_the_service_selected",
            "signals::test_R3_a_label_that_a_signal_fires_on_has_to_be_selected",
            "signals::test_R3_a_signal_fires_on_labels_of_its_own",
            "catalogue::test_R3_a_signal_without_a_classifier_is_shown_with_the_reason",
            "reflexes::test_R3_calibrating_sets_a_threshold_whose_precision_is_shown_with_its_interval",
        ),
    ),
    "R4": Requirement(
        "A Transform is versioned data that JSON holds.",
        (
            "transforms::test_R4_a_transform_is_data_that_json_holds_and_gives_back",
            "transforms::test_R4_a_version_fits_the_column_that_stores_keep_it_in",
        ),
    ),
    "R5": Requirement(
        "User chat and agent chat are exactly what was said and seen; a full conversation begins with its line.",
        (
            "transforms::test_R5_the_seeds_transforms_have_its_names_and_kinds",
            "transforms::test_R5_messages_are_sent_exactly_as_they_were_written",
            "transforms::test_R5_agent_chat_is_what_people_saw_of_it",
            "transforms::test_R5_a_full_conversation_begins_with_its_line",
            "transforms::test_R5_formats",
        ),
    ),
    "R6": Requirement(
        "Windows, pairs, tool calls, tool failures and every other turn of a person are transforms, too.",
        (
            "transforms::test_R6_a_rolling_window_ends_with_its_target",
            "transforms::test_R6_a_message_with_the_agents_message_before_it",
            "transforms::test_R6_a_message_with_the_tool_calls_made_upon_it",
            "transforms::test_R6_a_tool_failure_has_four_turns_before_it_and_two_after",
            "transforms::test_R6_an_agent_window_has_its_turns_and_tool_calls_and_no_one_elses",
            "transforms::test_R6_every_other_user_turn_is_the_first_and_the_third",
            "real_traces::test_R6_every_tool_error_that_the_data_marks_has_its_window",
        ),
    ),
    "R7": Requirement(
        "Nine signals have the transforms that they were trained on; one's own brings its own, or reads user chat.",
        (
            "catalogue::test_R7_the_seeds_nine_signals_have_its_transforms",
            "catalogue::test_R7_five_of_them_start_ticked_and_no_other",
            "catalogue::test_R7_a_signal_of_ones_own_reads_user_chat_unless_it_says_otherwise",
            "no_text::test_r7_signals_of_ones_own_bring_their_transform",
        ),
    ),
    "R8": Requirement(
        "A row is read by the models of its transform, and by no other.",
        (
            "plans::test_R8_a_text_is_read_by_the_models_of_its_transform_and_by_no_other",
            "plans::test_R8_two_signals_of_one_model_cannot_read_the_same_texts",
            "plans::test_R8_a_result_finds_its_signal",
        ),
    ),
    "R9": Requirement(
        "Row ids are unique whatever ids a log has, and lead back by a mapping and not by their spelling.",
        (
            "plans::test_R9_row_ids_are_spelled_as_in_the_seed",
            "plans::test_R9_whatever_ids_hold_rows_are_unique_and_the_mapping_has_them_as_they_were",
            "sources::test_R9_rows_of_spans_lead_back_to_them",
            "passes::test_r9_ids_and_texts_that_are_no_text_are_read_all_the_same",
        ),
    ),
    "R10": Requirement(
        "A pass keeps whose it is, its scope, signals, plan, counts, state and times.",
        (
            "passes::test_r10_a_pass_keeps_what_it_was_made_of_and_how_it_ended",
            "stores::TestSqlite::test_a_pass_is_kept_as_it_is",
            "stores::TestPostgres::test_a_pass_is_kept_as_it_is",
        ),
    ),
    "R11": Requirement(
        "An item says where a row came from, and nothing of what it says.",
        (
            "passes::test_r11_items_map_rows_to_where_they_came_from",
            "plans::test_R11_the_mapping_says_where_a_row_came_from_and_not_what_it_says",
            "plans::test_R11_a_key_tells_a_text_again_and_only_with_the_key",
        ),
    ),
    "R12": Requirement(
        "One result for each prediction, without raw text, kept for 365 days.",
        (
            "passes::test_r12_there_is_one_result_for_each_prediction",
            "signals::test_R12_the_top_label_is_the_class_with_the_highest_score_whoever_selected_it",
            "signals::test_R12_without_classes_the_top_label_is_empty_and_its_score_is_0",
            "no_text::test_r12_no_text_is_in_any_file_of_a_store",
            "no_text::test_r12_no_text_is_in_postgres",
            "no_text::test_r12_no_text_is_in_clickhouse",
            "no_text::test_r12_the_ddl_of_a_schema_is_what_a_store_makes",
            "stores::TestSqlite::test_results_expire_after_a_year",
            "stores::TestPostgres::test_results_expire_after_a_year",
            "stores::TestClickHouse::test_results_expire_after_a_year",
        ),
    ),
    "R13": Requirement(
        "A scope takes what it says, and records how it chose.",
        (
            "plans::test_R13_a_scope_takes_what_it_says_and_records_how_it_chose",
            "plans::test_R13_only_what_is_new_of_a_conversation_is_read_again",
            "plans::test_R13_what_could_not_be_chosen_is_counted_by_its_reason",
            "plans::test_R13_a_random_sample_is_the_same_for_the_same_seed_and_has_its_size",
            "measures::test_R13_a_rate_says_how_its_traces_were_chosen",
        ),
    ),
    "R14": Requirement(
        "The texts that would be sent are shown before anything is sent.",
        (
            "plans::test_R14_a_preview_shows_the_first_texts_of_each_transform_and_reads_no_further",
            "command::test_R14_the_preview_shows_the_very_texts",
        ),
    ),
    "B1": Requirement(
        "An upload has at most 10,000 rows with ids of their own, and no text over 350,000 characters.",
        (
            "transports::test_b1_what_a_service_would_refuse_is_not_sent",
            "transports::test_b1_a_batch_is_at_most_ten_thousand_rows",
            "passes::test_b1_a_text_that_is_too_long_fails_before_it_is_sent",
            "plans::test_B1_a_row_that_is_too_long_is_counted_and_not_among_the_inputs",
        ),
    ),
    "B2": Requirement(
        "A pass takes as many uploads as it needs, in flat memory.",
        (
            "passes::test_b2_a_pass_takes_as_many_batches_as_it_needs",
            "plans::test_B2_rows_over_the_limit_of_an_upload_take_several",
            "plans::test_B2_a_plan_over_many_turns_streams_in_flat_memory",
            "large::test_b2_what_a_pass_came_to_is_listed_in_flat_memory",
        ),
    ),
    "B3": Requirement(
        "An estimate counts predictions, multiplies them with a rate, and never calls an unknown cost 0.",
        (
            "plans::test_B3_an_estimate_counts_predictions_and_multiplies_them_with_the_rate",
            "plans::test_B3_a_cost_that_is_not_known_is_not_0",
            "command::test_B3_the_estimate_in_the_words_of_the_panel",
        ),
    ),
    "B4": Requirement(
        "A batch is uploaded, asked for and read, whatever the service and the network do in between.",
        (
            "transports::test_b4_a_batch_is_uploaded_polled_and_read",
            "transports::test_b4_a_request_that_fails_for_a_while_is_made_again_and_paid_for_once",
            "transports::test_b4_rows_are_read_leniently_and_none_is_lost",
            "passes::test_b4_nothing_is_lost_repeated_or_paid_for_twice",
            "passes::test_b4_whatever_happens_in_whatever_order_the_numbers_add_up",
        ),
    ),
    "B5": Requirement(
        "What was uploaded before a crash is uploaded again under the same key, and paid for once.",
        (
            "passes::test_b5_the_first_upload_goes_under_the_passs_key_and_others_under_its_numbers",
            "passes::test_b5_a_deliberate_rerun_is_a_new_pass",
            "passes::test_b5_a_crash_between_upload_and_saving_its_id_is_resumed_under_the_same_key",
            "passes::test_b5_a_pass_that_crashed_at_any_write_goes_on_and_pays_once",
            "killed::test_b5_killed_while_the_service_works_a_pass_resumes_and_pays_once",
            "transports::test_b5_a_key_is_shown_nowhere",
        ),
    ),
    "B6": Requirement(
        "The live preview gives the same results as a batch, within its caps.",
        (
            "transports::test_b6_a_preview_gives_the_same_outcomes_at_once_and_is_capped",
            "passes::test_b6_a_preview_sends_no_more_than_its_caps",
            "passes::test_b6_a_preview_leaves_the_same_results_as_a_batch",
        ),
    ),
    "B7": Requirement(
        "A row makes one result for each intended model: completed, failed, or none while it is pending.",
        (
            "outcomes::test_b7_a_completed_row_makes_a_result_for_each_prediction",
            "outcomes::test_b7_a_failed_row_is_one_failure_of_each_intended_model",
            "outcomes::test_b7_a_models_error_inside_a_completed_row_is_its_own_failure",
            "outcomes::test_b7_a_pending_row_makes_nothing",
            "outcomes::test_b7_every_intended_model_has_exactly_one_result",
        ),
    ),
    "B8": Requirement(
        "Taking results twice changes nothing, in any store, cut short anywhere.",
        (
            "passes::test_b8_syncing_twice_changes_nothing",
            "killed::test_b8_killed_while_it_writes_a_pass_resumes_and_pays_once",
            "stores::TestSqlite::test_writing_twice_changes_nothing",
            "stores::TestPostgres::test_writing_twice_changes_nothing",
            "stores::TestClickHouse::test_writing_twice_changes_nothing",
        ),
    ),
    "B9": Requirement(
        "A rerun reads everything, or only what no pass has read: by row, model, version of the transform, and text.",
        (
            "passes::test_b9_only_what_has_no_result_is_read",
            "passes::test_b9_a_model_that_is_new_reads_what_others_have_read",
            "passes::test_b9_a_new_version_of_a_transform_is_new",
            "passes::test_b9_a_text_that_changed_is_new_and_one_that_did_not_is_not",
        ),
    ),
    "B10": Requirement(
        "Failed rows are sent again in the same pass, and what failed stays as history.",
        (
            "passes::test_b10_failed_rows_are_sent_again_and_what_failed_is_history",
            "passes::test_b10_a_retry_that_crashed_goes_on_and_pays_once",
            "passes::test_b10_what_fails_again_stays_a_failure",
        ),
    ),
    "B11": Requirement(
        "Content that was not retained makes no row, and is counted in the estimate and on the pass.",
        (
            "plans::test_B11_what_was_not_retained_is_in_the_estimate_and_in_no_row",
            "passes::test_b11_what_was_not_retained_is_counted_on_the_pass",
            "transforms::test_B11_a_turn_without_content_makes_no_row_and_is_counted",
        ),
    ),
    "B12": Requirement(
        "What is too long loses its oldest part first, keeps its target, and says that it was cut, or fails.",
        (
            "transforms::test_B12_the_oldest_is_dropped_first_and_the_target_is_kept",
            "transforms::test_B12_a_text_over_the_limit_is_cut_and_marked_or_fails",
            "transforms::test_B12_no_text_is_over_its_budget_and_none_loses_its_target",
        ),
    ),
    "B13": Requirement(
        "Of a tool call its name, arguments, status and error are shown, and its result is cut.",
        ("transforms::test_B13_a_tools_name_arguments_status_and_error_are_shown_and_its_result_is_cut",),
    ),
    "B14": Requirement(
        "Of several passes the latest completed one counts; all, or one of them, on request.",
        (
            "passes::test_b14_the_latest_completed_pass_is_shown_by_default",
            "measures::test_B14_the_last_pass_that_read_a_conversation_counts",
            "stores::TestSqlite::test_the_latest_completed_pass_is_read_unless_another_is_asked_for",
            "stores::TestClickHouse::test_the_latest_completed_pass_is_read_unless_another_is_asked_for",
        ),
    ),
    "B15": Requirement(
        "A pass says where it stands: ready, running with its counts, complete, or complete with failed rows.",
        (
            "passes::test_b15_a_pass_says_how_far_it_has_come",
            "passes::test_b15_rows_that_never_come_leave_a_pass_running_until_it_is_given_up",
            "command::test_B15_the_words_of_the_panel",
            "pass_commands::test_B15_a_run_says_what_it_comes_to_and_how_it_ended",
        ),
    ),
    "B16": Requirement(
        "Conversations are listed with what fired, by signal and flagged alone, in milliseconds.",
        (
            "passes::test_b16_conversations_are_listed_with_what_fired",
            "stores::TestSqlite::test_conversations_are_summed_and_the_latest_come_first",
            "stores::TestClickHouse::test_conversations_are_summed_and_the_latest_come_first",
            "large::test_b16_lists_are_read_by_an_index",
            "pass_commands::test_B16_results_list_flagged_conversations_with_their_chips",
        ),
    ),
    "B17": Requirement(
        "One conversation is read turn by turn: what fired, and the rest when it is asked for.",
        (
            "passes::test_b17_a_conversation_is_read_turn_by_turn",
            "large::test_b17_details_are_read_by_an_index",
            "pass_commands::test_B17_one_conversation_shows_its_turns_and_clean_ones_when_asked",
        ),
    ),
    "B18": Requirement(
        "An account sees and touches its own rows alone.",
        (
            "passes::test_b18_another_account_can_neither_see_nor_touch_a_pass",
            "stores::TestSqlite::test_an_account_sees_its_own_rows_alone",
            "stores::TestPostgres::test_an_account_sees_its_own_passes_alone",
            "stores::TestClickHouse::test_an_account_sees_its_own_rows_alone",
            "exports::test_B18_accounts_are_never_put_together",
        ),
    ),
    "B19": Requirement(
        "Signals and presets are kept, results are exported, new traces are monitored, and what fired is told.",
        (
            "catalogue::test_B19_signals_and_presets_come_back_from_their_file",
            "stores::TestSqlite::test_signals_and_presets_are_kept",
            "exports::test_B19_what_is_exported_reads_back_equal",
            "monitors::test_b19_only_what_has_ended_since_the_last_run_is_read",
            "alerts::test_b19_a_webhook_is_signed_and_can_be_checked",
            "alerts::test_b19_slack_is_told_in_lines_that_hold_no_markup",
        ),
    ),
    "B20": Requirement(
        "The command greps traces for meaning, and exits with 1 where nothing fired.",
        (
            "command::test_B20_grep_prints_a_line_for_each_fired_turn",
            "command::test_B20_grep_exits_with_1_when_nothing_fired",
            "command::test_B20_misuse_exits_with_2_and_one_line",
            "pass_commands::test_B20_a_run_in_which_nothing_fired_exits_with_1",
        ),
    ),
}
