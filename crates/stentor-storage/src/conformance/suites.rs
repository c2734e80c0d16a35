//! The suites: every case by name, for any engine.

/// Defines a module of tests, one for each case of the store, for the engine whose home `$make` returns.
///
/// `$make` is a function without arguments; the returned home implements [`StoreHome`](crate::conformance::StoreHome) and is empty each
/// time.
#[macro_export]
macro_rules! store_suite {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            $crate::store_suite! { @on_store $make;
                apps {
                    an_app_is_given_as_it_was_kept
                    an_app_id_is_not_given_twice
                    an_unknown_app_is_not_found
                    a_deleted_app_takes_everything_along
                    deleting_an_app_leaves_the_others_alone
                    a_key_is_found_by_its_hash_and_gone_when_deleted
                    an_account_is_found_by_its_id_and_gone_when_deleted
                    an_app_has_so_many_accounts_and_no_more
                    an_app_has_so_many_keys_and_no_more
                    the_hashes_of_all_keys_are_given_up_to_a_limit
                    a_root_key_belongs_to_no_app
                    a_credential_is_replaced_and_removed
                    the_last_id_is_the_largest_in_use
                    an_apps_things_are_invisible_to_another_app
                }
                at_once {
                    a_message_sent_at_once_is_stored_begun_and_leased_in_one
                    a_message_sent_at_once_has_a_chunk_for_each_provider
                    a_user_and_a_token_are_sent_to_at_once
                    what_cannot_be_sent_at_once_waits_for_the_start
                    content_for_live_activities_reaches_their_devices_alone
                    a_device_that_is_gone_is_no_delivery_of_a_message_sent_at_once
                    a_newer_message_that_was_sent_before_it_replaces_one_sent_at_once
                    a_repeat_of_a_message_sent_at_once_leases_nothing
                    what_was_leased_at_once_is_released_or_recovered_like_any_lease
                }
                audit {
                    every_change_is_made_and_leaves_its_entry
                    a_change_that_fails_leaves_no_entry
                    a_repeated_schedule_leaves_one_entry
                    entries_are_bounded_and_nobody_crowds_out_what_others_did
                    a_person_is_named_in_the_entries_of_its_changes
                    an_apps_entries_stay_when_it_goes
                    entries_are_given_by_the_page_and_as_asked_for
                    old_entries_are_forgotten_and_their_numbers_not_given_again
                }
                chunks {
                    a_leased_chunk_has_all_that_is_needed_to_send_it
                    a_chunk_is_leased_once
                    a_chunk_asked_for_at_the_same_time_is_leased_once
                    an_unknown_or_settled_chunk_is_void
                    replies_belong_to_chunks_in_order
                    a_device_that_is_gone_at_sending_time_has_no_token
                    a_second_settlement_changes_nothing
                    a_settlement_repeated_within_one_call_is_stale
                    a_stale_epoch_settles_nothing
                    settling_an_unknown_chunk_is_stale
                    an_incoherent_settlement_is_refused_and_changes_nothing
                    children_carry_on_what_is_tried_again
                    settlements_of_one_call_are_answered_in_order
                    what_is_awaited_goes_on_under_the_lease_of_its_parent
                    what_is_awaited_settles_after_its_campaign_was_canceled
                    what_is_awaited_in_a_crash_is_released_and_counted
                    a_released_chunk_is_queued_again_without_an_attempt
                    a_chunk_is_released_only_by_its_lease
                    a_prolonged_lease_outlives_its_first_end
                    a_lease_is_prolonged_only_by_its_holder
                    queued_chunks_are_listed_in_order_to_be_published_again
                }
                collapse {
                    a_newer_message_with_the_same_key_replaces_a_queued_one
                    only_devices_that_the_newer_message_reaches_are_replaced
                    a_newer_message_replaces_nothing_before_it_is_expanded
                    a_newer_message_that_was_canceled_replaces_nothing
                    a_newer_message_that_was_stopped_replaces_nothing
                    a_newer_message_stopped_at_one_provider_still_replaces_at_the_other
                    another_key_or_no_key_replaces_nothing
                    the_newest_message_with_a_key_is_found_in_its_app_alone
                    an_older_message_never_replaces_a_newer_one
                    another_app_replaces_nothing
                    a_device_that_is_gone_is_gone_though_replaced
                    what_is_due_later_replaces_what_was_sent_after_it_was_accepted
                    what_was_sent_before_it_was_due_never_replaces_it
                    of_two_that_are_due_together_the_one_accepted_last_counts
                    a_newer_message_that_expired_replaces_nothing
                    a_newer_message_that_may_have_arrived_replaces_though_it_expired
                    a_newer_message_that_a_device_never_got_replaces_nothing_there
                    a_newer_message_that_is_tried_again_replaces_until_it_is_given_up
                }
                control {
                    canceling_ends_what_is_queued_at_once
                    a_cancel_notes_where_the_expansion_of_the_audience_stopped
                    what_is_leased_at_a_cancel_settles_and_its_retries_are_canceled
                    what_is_given_back_after_a_cancel_is_canceled
                    a_canceled_retry_stays_ambiguous
                    a_paused_campaign_leases_nothing_until_resumed
                    what_is_leased_at_a_pause_settles_and_its_retries_wait
                    a_paused_campaign_finishes_when_its_last_lease_settles
                    what_is_given_back_while_paused_waits_without_a_ticket
                    only_queued_chunks_of_running_campaigns_are_waiting
                    repeating_an_action_is_harmless
                    what_makes_no_sense_is_a_conflict
                    another_apps_campaign_cannot_be_touched
                    a_scheduled_campaign_is_canceled_before_it_begins
                    a_scheduled_campaign_paused_past_its_time_begins_when_resumed
                }
                devices {
                    a_device_is_given_as_it_was_registered
                    registering_the_same_again_changes_nothing_but_the_time
                    a_repeated_registration_replaces_what_it_names_and_keeps_the_rest
                    the_same_token_of_another_provider_or_app_is_another_device
                    registrations_are_kept_together_or_not_at_all
                    a_rehearsal_refuses_what_would_be_refused_and_keeps_nothing
                    a_device_id_is_never_given_again
                    devices_are_listed_in_order_page_by_page
                    devices_are_listed_by_provider_user_and_tag
                    devices_are_listed_by_their_state
                    a_patch_changes_what_it_names
                    a_patched_token_leads_to_the_same_device
                    a_token_that_another_device_holds_is_a_conflict
                    a_removed_device_is_gone_from_topics_groups_and_its_user
                    a_device_known_only_by_its_token_is_not_listed_until_registered
                    counts_are_by_provider
                }
                renewals {
                    a_device_whose_former_token_is_named_moves_to_the_new_one
                    a_renewal_changes_the_facts_that_it_names_and_revives_its_device
                    a_former_token_that_no_device_has_changes_nothing
                    devices_that_turn_out_to_be_one_become_the_one_that_was_registered_first
                    a_device_that_had_the_new_token_first_stays_in_place_of_the_one_with_the_former
                    what_waits_for_two_devices_that_become_one_reaches_it_once
                    devices_with_too_many_topics_together_stay_two
                    renewals_that_name_each_others_tokens_are_made_in_their_order
                    many_renewals_at_once_move_each_device_and_make_none
                    devices_are_listed_by_the_form_of_their_token
                }
                expiry {
                    what_is_queued_past_its_ttl_expires
                    a_paused_campaign_ages_and_expires
                    what_is_leased_does_not_expire
                    a_retry_expires_while_it_waits
                    a_message_of_no_ttl_waits_for_its_one_attempt
                    a_message_of_no_ttl_that_cannot_be_tried_expires_after_its_grace
                    ttl_counts_from_the_due_time
                    a_sweep_ends_at_most_its_limit
                }
                groups {
                    a_group_is_made_once
                    members_are_counted_as_they_come_and_go
                    a_groups_audience_follows_its_people_and_their_devices
                    members_are_listed_people_first_page_by_page
                    groups_are_listed_by_name
                    a_removed_group_is_gone_and_its_members_stay
                    members_of_an_unknown_group_are_not_found
                    a_person_or_device_is_in_at_most_a_thousand_groups
                    a_group_with_a_limit_takes_all_of_some_members_or_none
                }
                history {
                    a_delivery_lists_every_attempt_in_order
                    an_attempt_names_its_chunk_times_and_reason
                    the_chunks_of_a_message_show_each_device_once_and_where_it_is
                    the_sums_of_several_campaigns_are_given_at_once
                    a_device_outside_the_audience_has_no_delivery
                    another_apps_delivery_is_not_found
                    a_history_is_listed_newest_message_first_page_by_page
                    every_device_of_a_long_audience_is_found
                }
                idempotency {
                    a_repeated_request_gets_the_first_reply_and_sends_nothing
                    a_key_used_for_another_request_is_refused
                    repeats_within_one_batch_are_repeats
                    repeats_at_the_same_time_are_kept_once
                    a_key_is_looked_up_before_any_work
                    a_reply_is_kept_by_itself_and_the_first_one_stays
                    each_app_has_its_own_keys
                    a_refused_message_leaves_its_key_free
                    old_keys_are_forgotten
                }
                ledger {
                    the_books_follow_a_campaign_from_first_to_last
                    the_books_are_kept_by_provider
                    ends_are_counted_by_reason
                    attempts_are_counted_as_the_settlement_says
                    ambiguous_ends_are_counted_once_they_ended
                    a_lease_shows_the_books_with_itself_as_sending
                    a_stopped_provider_fails_its_rest_and_keeps_its_reason
                    a_stop_at_one_provider_leaves_the_others_alone
                    a_campaign_with_a_stop_and_nothing_accepted_ends_stopped
                    a_stop_ends_what_was_settled_beside_it
                    a_chunk_given_back_to_a_stopped_provider_fails
                    a_queued_chunk_in_quarantine_fails_as_damaged_and_the_rest_goes_on
                    a_leased_chunk_in_quarantine_is_ambiguous_and_its_settlement_stale
                    what_is_in_quarantine_is_pruned_with_its_campaign
                    a_stop_after_a_cancel_changes_nothing
                }
                messages {
                    a_message_is_given_as_it_was_accepted
                    several_messages_are_given_at_once_and_only_those_of_the_app
                    the_last_state_of_a_topic_is_found_behind_any_number_of_messages
                    a_last_state_that_is_over_or_held_back_leaves_the_one_before
                    what_is_due_later_becomes_the_last_state_when_it_is_due
                    a_device_gets_its_chunk_at_once
                    named_devices_are_split_by_provider_and_size
                    a_token_that_nobody_registered_is_reached
                    a_token_that_is_registered_leads_to_its_device
                    a_user_gets_it_on_all_devices
                    a_user_without_devices_finishes_at_once
                    a_group_reaches_devices_and_people_once_each
                    a_topic_reaches_its_devices
                    a_condition_reaches_whom_it_fits
                    everyone_reaches_all_providers
                    what_does_not_exist_in_the_app_is_not_found
                    a_message_for_an_unknown_app_is_refused_alone
                    a_message_id_is_not_taken_twice
                    a_retired_device_is_in_no_audience_unless_it_is_named
                    campaigns_are_listed_newest_first
                    counting_an_audience_keeps_nothing
                }
                producers {
                    a_wide_message_waits_for_its_producers
                    a_step_makes_as_many_chunks_as_asked_and_goes_on_where_it_stopped
                    every_kind_of_audience_is_walked_once_in_many_steps
                    what_is_queued_of_a_campaign_is_counted_for_its_producer
                    a_producer_that_has_ended_makes_nothing_more
                    later_devices_are_not_in_the_audience
                    a_campaign_without_audience_finishes_with_its_last_producer
                    a_campaign_finishes_only_after_its_producers
                    campaigns_are_expanded_side_by_side
                    a_paused_campaign_expands_nothing_until_resumed
                    a_canceled_campaign_ends_its_producers
                    an_audience_cut_short_by_a_cancel_is_complete
                    a_device_removed_before_its_turn_is_not_in_the_audience
                    a_producer_given_up_stops_its_campaign_at_its_provider_alone
                }
                preconditions {
                    a_device_is_changed_and_removed_only_as_it_must_be
                    of_changes_of_one_state_at_the_same_time_one_is_made
                    people_and_groups_are_made_only_where_there_is_none_when_they_must_be_new
                    people_groups_and_topics_are_removed_only_as_they_must_be
                    apps_and_schedules_are_deleted_only_as_they_must_be_and_leave_no_entry_otherwise
                }
                prune {
                    a_campaign_that_ended_long_ago_is_forgotten
                    a_campaign_that_has_not_ended_is_never_forgotten
                    the_last_state_of_a_topic_outlives_the_time_for_which_campaigns_are_kept
                    pruning_goes_on_until_nothing_is_left
                    many_campaigns_are_forgotten_together_and_what_is_newer_stays_whole
                    a_token_that_was_messaged_once_stays_as_long_as_a_campaign_counts_it
                    an_unlisted_device_goes_when_nothing_counts_it_and_a_listed_one_stays
                }
                receipts {
                    what_waits_for_a_device_is_listed_until_it_confirms
                    what_waits_for_many_devices_is_listed_at_once_as_for_each_of_them
                    a_receipt_counts_once_and_only_for_what_was_accepted
                    what_expired_or_was_canceled_does_not_wait
                    what_is_dropped_stays_accepted_and_waits_no_more
                    only_devices_of_the_gateway_have_something_waiting
                    what_waits_outlives_the_time_for_which_campaigns_are_kept
                    what_is_paused_waits_and_says_so_also_when_all_of_it_was_accepted
                }
                nodes {
                    who_joins_gets_a_number_above_all_that_are_in_use
                    what_a_node_had_leased_is_released_when_it_starts_again
                    a_node_hears_nothing_of_what_it_did_itself
                    what_nodes_published_lately_is_kept
                }
                proposals {
                    a_proposal_is_shown_until_it_is_approved_and_sends_its_message_once
                    a_proposal_that_has_expired_or_belongs_to_another_app_cannot_be_approved
                    an_app_has_a_bounded_number_of_proposals_and_expired_ones_make_room
                    a_deleted_proposal_is_gone_and_one_goes_with_its_app
                }
                registry {
                    a_service_is_found_by_name_and_by_kind
                    a_service_published_again_keeps_its_first_time_and_lives_on
                    what_has_expired_is_not_found_and_makes_room
                    a_removed_service_is_gone_and_another_apps_stays
                }
                recover {
                    leases_of_a_dead_process_are_released_and_counted
                    what_was_sent_before_a_crash_is_marked_ambiguous
                    a_dead_process_settles_nothing_any_more
                    own_leases_are_left_alone
                    the_number_of_an_instance_counts_as_given_out
                    a_store_that_keeps_says_so_and_shows_nothing_of_the_trial
                    every_crash_adds_to_the_bound
                    a_crash_during_a_cancel_leaves_nothing_open
                    a_crash_while_paused_leaves_chunks_waiting
                    a_lease_that_ran_out_is_released_like_a_crash
                }
                upstream {
                    what_a_device_sends_waits_until_it_is_taken_over
                    the_same_message_of_a_device_is_kept_once_even_after_it_was_taken_over
                    of_one_device_only_so_many_wait
                    what_is_claimed_counts_as_tried_and_stays_its_own
                    a_dead_letter_waits_no_more_and_can_be_revived
                    what_has_expired_is_forgotten
                    a_receipt_is_given_to_those_who_want_it_and_takes_no_place_of_a_message
                    a_webhook_is_replaced_and_removed_and_goes_with_its_app
                    a_program_has_its_channels_and_only_so_many
                    every_engine_keeps_the_same_texts_and_refuses_the_same
                    a_token_that_was_replaced_leads_to_its_device
                    a_device_has_a_few_former_tokens_the_newest
                    of_the_dead_letters_of_a_device_the_newest_are_kept
                    what_the_gateway_keeps_of_a_device_goes_with_it
                    what_the_gateway_keeps_of_an_apps_devices_goes_with_the_app
                    a_device_has_the_keys_that_it_registered_last_until_it_takes_them_back
                    keys_are_of_devices_of_the_gateway_and_of_their_app_alone
                    an_offered_token_is_the_devices_once_it_is_taken_and_not_before
                    an_offer_counts_no_more_when_the_device_has_another_token_or_is_gone
                }
                schedules {
                    a_message_that_is_due_later_waits
                    a_message_is_only_kept_and_begins_as_soon_as_asked
                    a_waiting_message_takes_its_audience_when_it_begins
                    a_waiting_message_whose_target_is_gone_reaches_nobody
                    a_schedule_is_given_as_it_was_kept
                    a_schedule_made_twice_under_one_key_is_made_once
                    due_schedules_are_those_that_are_active_and_late
                    schedules_are_counted_by_app_while_they_may_fire
                    every_app_has_its_turn_when_more_schedules_are_due_than_asked_for
                    every_app_has_its_turn_when_more_messages_are_due_than_begin_at_once
                    an_occurrence_fires_once
                    a_tick_that_is_not_the_next_one_does_not_fire
                    a_paused_or_canceled_schedule_does_not_fire
                    a_skipped_tick_advances_and_sends_nothing
                    a_schedule_without_a_further_tick_is_finished
                    a_schedule_in_quarantine_fires_no_more_and_can_be_canceled
                }
                sessions {
                    an_ended_session_is_known_until_it_expires
                }
                tokens {
                    the_holder_of_a_token_is_found_listed_or_not
                    a_dead_token_retires_its_device
                    a_device_registered_again_after_its_token_died_is_kept
                    a_device_registered_again_while_its_old_token_was_tried_is_kept
                    a_device_registered_again_while_its_answer_was_awaited_is_kept
                    a_late_report_about_a_former_token_leaves_the_new_one_alone
                    registering_a_retired_device_revives_it
                    a_new_token_revives_a_retired_device
                    a_replaced_token_is_used_from_then_on
                    a_token_that_changes_after_the_expansion_is_read_anew
                    a_device_retired_after_the_expansion_is_not_sent_to
                    a_replacement_that_another_device_holds_retires_the_old_device
                    a_replacement_older_than_the_last_registration_is_ignored
                    a_stale_settlement_changes_no_token
                    a_token_change_for_a_removed_device_is_harmless
                }
                topics {
                    subscribing_counts_new_old_and_unknown_devices
                    unsubscribing_takes_away_and_leaves_the_topic
                    a_topic_that_nobody_needs_is_removed_and_no_other
                    topics_are_listed_by_name
                    a_removed_topic_takes_its_subscriptions_along
                    a_device_has_at_most_two_thousand_topics
                    one_full_device_among_many_keeps_all_from_being_subscribed
                    topics_of_an_unknown_device_are_not_found
                }
                users {
                    a_person_is_known_once_named
                    registering_a_device_makes_its_user_known
                    people_are_listed_by_external_id_without_devices
                    a_forgotten_person_leaves_devices_without_owner
                    an_unknown_person_is_not_found
                }
            }
            $crate::store_suite! { @on_home $make;
                restart {
                    devices_and_topics_are_there_after_a_restart
                    an_accepted_message_is_there_after_a_restart
                    a_producer_goes_on_after_a_restart
                    a_crash_between_lease_and_settlement_loses_nothing
                    a_paused_campaign_is_paused_after_a_restart
                }
            }
        }
    };
    (@on_store $make:expr; $($area:ident { $($case:ident)* })*) => {$(
        mod $area {
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    let home = $make();
                    let store = $crate::conformance::StoreHome::open(&home).await;
                    $crate::conformance::store::$area::$case(&*store).await;
                }
            )*
        }
    )*};
    (@on_home $make:expr; $($area:ident { $($case:ident)* })*) => {$(
        mod $area {
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    $crate::conformance::store::$area::$case(&$make()).await;
                }
            )*
        }
    )*};
}

/// Defines a module of tests, one for each case of the queue, for the engine whose home `$make` returns.
///
/// `$make` is a function without arguments; the returned home implements [`QueueHome`](crate::conformance::QueueHome) and is empty each
/// time.
#[macro_export]
macro_rules! queue_suite {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            $crate::queue_suite! { @on_queue $make;
                depths {
                    depths_count_ready_delayed_and_leased
                    each_lane_that_holds_anything_is_listed
                    a_lease_that_ran_out_counts_as_ready
                    a_queue_that_takes_tickets_says_so_and_shows_nothing_of_the_trial
                }
                leases {
                    a_leased_ticket_is_nobody_elses
                    a_lease_that_ran_out_is_given_to_another
                    an_acked_ticket_is_gone_for_good
                    a_nacked_ticket_comes_back_when_it_is_due
                    a_nacked_ticket_stands_behind_what_is_due_before
                    a_lease_lost_meanwhile_settles_nothing
                    a_prolonged_lease_holds_on
                    a_lost_lease_cannot_be_prolonged
                    an_acked_lease_cannot_be_prolonged
                }
                publishing {
                    a_published_ticket_is_leased_as_it_was
                    an_empty_queue_gives_nothing
                    tickets_are_leased_by_due_time_then_by_chunk
                    a_ticket_is_not_leased_before_it_is_due
                    publishing_again_changes_nothing
                    a_chunk_taken_out_can_be_published_anew
                    lanes_do_not_mix
                    withdrawn_chunks_are_gone_leased_or_not
                    clearing_throws_everything_away
                    a_thousand_tickets_come_out_once_each
                    publishing_wakes_who_waits_for_a_change
                    giving_back_wakes_who_waits_for_a_change
                }
            }
            $crate::queue_suite! { @on_home $make;
                restart {
                    tickets_outlive_the_queue_if_the_engine_says_so
                    a_queue_is_rebuilt_by_publishing_all_again
                    what_a_dead_process_had_leased_is_freed_and_nothing_else
                }
            }
        }
    };
    (@on_queue $make:expr; $($area:ident { $($case:ident)* })*) => {$(
        mod $area {
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    let home = $make();
                    let queue = $crate::conformance::QueueHome::open(&home).await;
                    $crate::conformance::queue::$area::$case(&*queue).await;
                }
            )*
        }
    )*};
    (@on_home $make:expr; $($area:ident { $($case:ident)* })*) => {$(
        mod $area {
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    $crate::conformance::queue::$area::$case(&$make()).await;
                }
            )*
        }
    )*};
}
