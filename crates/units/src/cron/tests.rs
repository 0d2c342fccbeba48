//! What the dialect accepts, when it hits, and the window vectors of the budget contract.

use super::*;

/// A Saturday.
const START: &str = "2026-08-01T10:20:30Z";

#[track_caller]
fn check(schedule: &str, start: &str, next: &str) {
    let hit = Schedule::parse(schedule).unwrap().next_after(start.parse().unwrap());
    assert_eq!(hit.map_or("never".to_owned(), |hit| hit.to_string()), next, "{schedule}");
}

#[track_caller]
fn check_invalid(schedules: &[&str]) {
    for schedule in schedules {
        assert!(Schedule::parse(schedule).is_err(), "{schedule}");
    }
}

#[test]
fn descriptors_stand_for_their_fields() {
    check("@midnight", START, "2026-08-02T00:00:00Z");
    check("@daily", START, "2026-08-02T00:00:00Z");
    check("@annually", START, "2027-01-01T00:00:00Z");
    check("@yearly", START, "2027-01-01T00:00:00Z");
    check("@monthly", START, "2026-09-01T00:00:00Z");
    check("@weekly", START, "2026-08-02T00:00:00Z");
    check("@hourly", START, "2026-08-01T11:00:00Z");
    check_invalid(&["@", "@dailyX", "@Daily", "@daily 1", "@reboot"]);
}

#[test]
fn every_counts_whole_seconds_from_the_start() {
    check("@every 1h", START, "2026-08-01T11:20:30Z");
    check("@every 1h", "2026-08-01T10:20:30.75Z", "2026-08-01T11:20:30Z");
    check("@every 1500ms", START, "2026-08-01T10:20:31Z");
    check("@every 1ms", START, "2026-08-01T10:20:31Z");
    check("@every -5m", START, "2026-08-01T10:20:31Z");
    check("@every 1s", "1960-01-01T00:00:00.5Z", "1960-01-01T00:00:01Z");
    check_invalid(&["@every", "@every ", "@every 1", "@every  1h", "@every\t1h", "@every1h"]);
}

#[test]
fn a_step_after_a_number_runs_to_the_largest_value() {
    check("1/15 * * * *", START, "2026-08-01T10:31:00Z");
    check("50/5 * * * *", "2026-08-01T10:55:00Z", "2026-08-01T11:50:00Z");
    check("10-20/5 * * * *", START, "2026-08-01T11:10:00Z");
    check("*/9999999999 * * * *", START, "2026-08-01T11:00:00Z");
}

#[test]
fn a_question_mark_is_a_star() {
    check("0 0 ? * MON", START, "2026-08-03T00:00:00Z");
}

#[test]
fn sunday_is_zero_and_not_seven() {
    check("0 0 * * 0", START, "2026-08-02T00:00:00Z");
    check_invalid(&["0 0 * * 7", "0 0 * * 5-7"]);
}

#[test]
fn extensions_of_other_dialects_are_errors() {
    check_invalid(&["0 0 L * *", "0 0 15W * *", "0 0 * * MON#1", "0 0 * * 5L", "~ * * * *"]);
}

#[test]
fn any_other_number_of_fields_is_an_error() {
    check_invalid(&["", " ", "*", "* * * *", "0 * * * * *", "TZ=UTC 0 0 * * *", "CRON_TZ=UTC 0 0 * * *"]);
}

#[test]
fn a_step_above_one_clears_the_star_so_that_either_day_field_is_enough() {
    // The third is an odd day of the month, the fifth a Wednesday and odd too, the fourth a Tuesday.
    check("0 0 */2 * 2", START, "2026-08-03T00:00:00Z");
    check("0 0 */2 * 2", "2026-08-03T00:00:00Z", "2026-08-04T00:00:00Z");
    check("0 0 */1 * 2", START, "2026-08-04T00:00:00Z");
    check("0 0 13 * 5", START, "2026-08-07T00:00:00Z");
    check("0 0 13 * *", START, "2026-08-13T00:00:00Z");
    check("0 0 *,13 * 5", START, "2026-08-07T00:00:00Z");
}

#[test]
fn plus_signs_and_empty_list_parts_are_accepted() {
    check("+5 * * * *", START, "2026-08-01T11:05:00Z");
    check("1,,2 * * * *", START, "2026-08-01T11:01:00Z");
}

#[test]
fn a_field_of_commas_matches_nothing() {
    check(", * * * *", START, "never");
    check("* * , * ,", START, "never");
}

#[test]
fn the_search_ends_after_five_years() {
    check("0 0 31 2 *", START, "never");
    check("0 0 29 2 *", START, "2028-02-29T00:00:00Z");
    // 1900 and 2100 are no leap years: from 2096 the next one is eight years away.
    check("0 0 29 2 *", "2096-03-01T00:00:00Z", "never");
    check("0 0 29 2 *", "2098-12-31T23:59:59Z", "2104-02-29T00:00:00Z");
}

#[test]
fn names_are_read_in_any_case() {
    check("0 0 * Sep mOn-FRI", START, "2026-09-01T00:00:00Z");
    check_invalid(&["0 0 * september *", "jan * * * *", "0 0 mon * *"]);
}

#[test]
fn ranges_must_ascend_within_bounds() {
    check_invalid(&[
        "0 0 * * tue-mon",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "5-60 * * * *",
        "1-2-3 * * * *",
        "-5 * * * *",
        "-0 * * * *",
        "0--0 * * * *",
        "*/9223372036854775808 * * * *",
        "5- * * * *",
        "*/0 * * * *",
        "*/-1 * * * *",
        "*/ * * * *",
        "1/2/3 * * * *",
        "** * * * *",
        "1.5 * * * *",
        "99999999999999999999 * * * *",
    ]);
}

#[test]
fn what_follows_a_star_and_a_hyphen_is_ignored() {
    check("*-9 0 * * *", START, "2026-08-02T00:00:00Z");
    check("*-x-y/30 * * * *", START, "2026-08-01T10:30:00Z");
}

#[test]
fn fields_are_separated_by_any_white_space() {
    check("\t30  11\u{a0}* *\n* ", START, "2026-08-01T11:30:00Z");
}

#[test]
fn a_hit_is_strictly_after_the_given_time() {
    check("20 10 * * *", "2026-08-01T10:20:00Z", "2026-08-02T10:20:00Z");
    check("20 10 * * *", "2026-08-01T10:19:59.999999999Z", "2026-08-01T10:20:00Z");
    check("* * * * *", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z");
}

#[test]
fn the_end_of_time_has_no_next_hit() {
    assert_eq!(Schedule::parse("* * * * *").unwrap().next_after(Timestamp::MAX), None);
    assert_eq!(Schedule::parse("@every 1h").unwrap().next_after(Timestamp::MAX), None);
}

#[track_caller]
fn check_window(schedule: &str, duration: &str, now: &str, active: bool) {
    let window = Window { schedule: Schedule::parse(schedule).unwrap(), duration: duration.parse().unwrap() };
    assert_eq!(window.is_active(now.parse().unwrap()), active, "{schedule} for {duration} at {now}");
}

#[test]
fn windows_of_the_budget_contract() {
    check_window("* * * * *", "1h", "2000-06-15T12:30:30Z", true);
    check_window("@yearly", "1h", "2000-06-15T12:30:30Z", false);
    check_window("@daily", "48h", "2024-01-07T00:00:00Z", true);
    check_window("30 6 * * SUN", "6h", "2024-01-07T00:00:00Z", false);
}

#[test]
fn a_window_opens_at_the_hit_and_closes_a_duration_later() {
    check_window("0 9 * * *", "1h", "2026-08-01T08:59:59Z", false);
    check_window("0 9 * * *", "1h", "2026-08-01T09:00:00Z", true);
    check_window("0 9 * * *", "1h", "2026-08-01T09:59:59.999999999Z", true);
    check_window("0 9 * * *", "1h", "2026-08-01T10:00:00Z", false);
    check_window("* * * * *", "0s", "2026-08-01T10:00:00Z", false);
}

#[test]
fn a_schedule_that_never_hits_is_always_active() {
    check_window("0 0 31 2 *", "1h", "2026-08-01T10:00:00Z", true);
}

#[test]
fn a_window_at_the_ends_of_time_does_not_overflow() {
    for duration in ["2562047h", "-2562047h"] {
        let window =
            Window { schedule: Schedule::parse("@daily").unwrap(), duration: duration.parse().unwrap() };
        window.is_active(Timestamp::MIN);
        window.is_active(Timestamp::MAX);
    }
}

#[test]
fn errors_name_the_schedule_and_what_is_accepted() {
    let message = |text: &str| Schedule::parse(text).unwrap_err().to_string();
    assert!(message("0 0 * * 7").contains("\"7\" is not *, a number from 0 to 6 (or sun to sat)"));
    assert!(message("* * *").starts_with("invalid schedule \"* * *\": it has 3 fields; expected five"));
    assert!(message("@dailyX").contains("expected one of @yearly"));
}
