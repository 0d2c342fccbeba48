//! What must hold for every input, on random ones. A failure prints its seed.

use jiff::Timestamp;
use proptest::prelude::*;
use units::{
    BudgetNodes, Format, GoDuration, NillableDuration, Quantity, Resources, Schedule, Window, quantity,
};

/// Any text at all, or one made of the characters that mean something to the parser.
fn text(alphabet: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), alphabet]
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::DecimalSi), Just(Format::BinarySi), Just(Format::DecimalExponent)]
}

/// Values of every size up to well below the limit, many of them round.
fn any_quantity() -> impl Strategy<Value = Quantity> {
    let base = prop_oneof![Just(1_i128), Just(1000), Just(1_000_000_000), Just(1024 * 1_000_000_000)];
    let magnitude = (any::<i64>(), 0_u32..63).prop_map(|(value, shift)| i128::from(value >> shift));
    (magnitude, base, format()).prop_map(|(value, base, format)| Quantity::from_nanos(value * base, format))
}

/// Any time that exists, the first and the last included.
fn timestamp() -> impl Strategy<Value = Timestamp> {
    (Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond())
        .prop_map(|nanos| Timestamp::from_nanosecond(nanos).expect("the range is that of timestamps"))
}

/// A time between 1900 and 2200, far from both ends of time.
fn usual_timestamp() -> impl Strategy<Value = Timestamp> {
    (-2_208_988_800_000_000_000_i128..7_258_118_400_000_000_000)
        .prop_map(|nanos| Timestamp::from_nanosecond(nanos).expect("timestamps reach from -9999 to 9999"))
}

proptest! {
    #[test]
    fn no_text_makes_the_quantity_parser_panic(
        text in text("[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,20}"),
    ) {
        if let Ok(read) = text.parse::<Quantity>() {
            let written = quantity::rewritten(&text).unwrap();
            prop_assert_eq!(written.parse::<Quantity>(), Ok(read));
            let _ = (read.value(), read.milli_value(), read.as_f64(), -read);
        }
    }

    #[test]
    fn a_printed_quantity_reads_back_as_itself(quantity in any_quantity()) {
        let printed = quantity.to_string();
        let again: Quantity = printed.parse().unwrap();
        // Sums in binary format may exceed the cap that applies to reading them.
        let capped = quantity.value() == i64::MIN || quantity.value() == i64::MAX;
        prop_assume!(!(quantity.format() == Format::BinarySi && capped));
        prop_assert_eq!(again, quantity);
        // Without a suffix the family is not in the text: a binary 64000 reads back as decimal.
        prop_assert_eq!(again.with_format(quantity.format()).to_string(), printed);
    }

    #[test]
    fn subtracting_undoes_adding(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a + b - b, a);
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!(a - b, a + -b);
    }

    #[test]
    fn order_is_that_of_the_exact_values(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a.cmp(&b), a.nanos().cmp(&b.nanos()));
        prop_assert_eq!((a - b).sign(), a.nanos().cmp(&b.nanos()) as i32);
    }

    #[test]
    fn rounding_moves_away_from_zero_by_less_than_one(quantity in any_quantity()) {
        let value = quantity.value();
        prop_assume!(value != i64::MIN && value != i64::MAX);
        let excess = i128::from(value) * 1_000_000_000 - quantity.nanos();
        prop_assert!(excess.abs() < 1_000_000_000 && excess * i128::from(quantity.sign()) >= 0);
    }

    #[test]
    fn requests_fit_into_themselves_and_more(
        amounts in prop::collection::vec(("[a-d]", any_quantity()), 0..4),
    ) {
        let requests: Resources =
            amounts.iter().map(|(name, quantity)| (&**name, (*quantity).max(-*quantity))).collect();
        let mut twice = requests.clone();
        twice.add(&requests);
        prop_assert!(requests.fits(&requests) && requests.fits(&twice));
        prop_assert_eq!(twice.fits(&requests), requests.is_zero());
        twice.subtract(&requests);
        prop_assert_eq!(twice, requests);
    }

    #[test]
    fn no_text_makes_the_duration_parsers_panic(
        text in text("[-+]?([0-9.]{0,22}(ns|us|µs|ms|s|m|h)?){0,3}"),
    ) {
        let read = text.parse::<GoDuration>();
        let nillable = text.parse::<NillableDuration>();
        if let Ok(nillable) = nillable {
            prop_assert_eq!(nillable.as_str(), &text);
            prop_assert_eq!(nillable.duration(), read.ok());
        }
    }

    #[test]
    fn a_printed_duration_reads_back_as_itself(nanos in any::<i64>(), shift in 0_u32..63) {
        let duration = GoDuration::from_nanos(nanos >> shift);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn no_text_makes_the_schedule_parser_panic(
        text in text("@?([*?0-9,/+a-z-]{1,5} ){4}[*?0-9,/+a-z-]{1,5}"),
        time in timestamp(),
    ) {
        if let Ok(schedule) = Schedule::parse(&text) {
            prop_assert!(schedule.next_after(time).is_none_or(|hit| hit > time));
        }
    }

    #[test]
    fn hits_are_whole_minutes_strictly_later(
        text in "[0-5]?[0-9] (\\*|1?[0-9]) (\\*|[1-9]) (\\*|[1-9]) (\\*|[0-6])",
        time in usual_timestamp(),
        duration in any::<i64>(),
    ) {
        let schedule = Schedule::parse(&text).unwrap();
        if let Some(hit) = schedule.next_after(time) {
            prop_assert!(hit > time && hit.as_nanosecond() % 60_000_000_000 == 0);
            let window = Window { schedule, duration: GoDuration::from_nanos(duration) };
            prop_assert_eq!(window.is_active(hit), duration > 0);
        }
    }

    #[test]
    fn no_text_makes_the_budget_parser_panic(text in text("[-+]?[0-9]{0,22}%?"), nodes in any::<usize>()) {
        if let Ok(budget) = text.parse::<BudgetNodes>() {
            prop_assert_eq!(budget.to_string().parse(), Ok(budget));
            let _ = budget.resolve(nodes);
        }
    }

    #[test]
    fn a_percentage_allows_the_smallest_number_that_covers_it(
        percent in 0_i64..=100,
        nodes in 0_u32..1_000_000,
    ) {
        let allowed = i64::from(BudgetNodes::Percent(percent).resolve(nodes as usize));
        let hundredths = percent * i64::from(nodes);
        prop_assert!(allowed * 100 >= hundredths && (allowed - 1) * 100 < hundredths);
    }
}
