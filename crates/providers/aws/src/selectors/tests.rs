//! Questions and answers of selectors.

use serde_json::{Value, json};

use super::*;

fn written(queries: &[Vec<Filter>]) -> Vec<String> {
    let filter = |each: &Filter| format!("{}={}", each.name, each.values.join("|"));
    queries.iter().map(|filters| filters.iter().map(filter).collect::<Vec<_>>().join(" & ")).collect()
}

#[test]
fn ids_of_subnets_are_one_question_and_each_set_of_tags_is_another() {
    let terms: Vec<SubnetSelectorTerm> = serde_json::from_value(json!([
        {"tags": {"a": "b", "c": "*"}}, {"id": "subnet-2"}, {"id": "subnet-1", "tags": {"x": "y"}}, {},
        {"tags": {"d": "e"}},
    ]))
    .unwrap();
    assert_eq!(
        written(&subnet_queries(&terms)),
        ["subnet-id=subnet-1|subnet-2", "tag:a=b & tag-key=c", "tag:d=e"]
    );
}

#[test]
fn security_groups_are_found_by_id_name_or_tags_in_this_order() {
    let terms: Vec<SecurityGroupSelectorTerm> = serde_json::from_value(json!([
        {"name": "n", "tags": {"x": "y"}}, {"id": "sg-1", "name": "m"}, {"tags": {"a": "b"}}, {"name": "k"},
    ]))
    .unwrap();
    assert_eq!(written(&security_group_queries(&terms)), ["group-id=sg-1", "group-name=k|n", "tag:a=b"]);
}

#[test]
fn reservations_are_found_by_id_or_by_what_they_are_but_not_by_owner_alone() {
    let terms: Vec<CapacityReservationSelectorTerm> = serde_json::from_value(json!([
        {"id": "cr-1"}, {"ownerID": "123456789012"},
        {"ownerID": "123456789012", "tags": {"a": "*"}, "instanceMatchCriteria": "open"},
        {"instanceMatchCriteria": "targeted"},
    ]))
    .unwrap();
    let queries = reservation_queries(&terms);
    assert_eq!(queries[0].ids, ["cr-1"]);
    let filters: Vec<Vec<Filter>> = queries.into_iter().map(|query| query.filters).collect();
    assert_eq!(
        written(&filters),
        [
            "state=active",
            "state=active & owner-id=123456789012 & tag-key=a & instance-match-criteria=open",
            "state=active & instance-match-criteria=targeted",
        ]
    );
}

#[test]
fn a_placement_group_is_found_by_id_or_name() {
    let query = |selector: Value| {
        let selector: Option<PlacementGroupSelector> = serde_json::from_value(selector).unwrap();
        placement_group_query(selector.as_ref())
    };
    assert_eq!(query(json!({"id": "pg-1"})), Some(PlacementGroupQuery::Id("pg-1".to_owned())));
    assert_eq!(query(json!({"name": "n"})), Some(PlacementGroupQuery::Name("n".to_owned())));
    assert_eq!((query(json!({})), query(Value::Null)), (None, None));
}

#[test]
fn subnets_with_most_addresses_come_first_and_each_once() {
    let subnet = |id: &str, free| Subnet {
        id: id.to_owned(),
        zone: "a".to_owned(),
        zone_id: "az1".to_owned(),
        available_addresses: free,
    };
    let found = subnets(vec![subnet("c", 5), subnet("b", 9), subnet("a", 5), subnet("c", 5)]);
    assert_eq!(found.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
    let group = |id: &str| SecurityGroup { id: id.to_owned(), name: String::new() };
    let groups = security_groups(vec![group("b"), group("a"), group("b")]);
    assert_eq!(groups.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_capacity_block_expires_forty_minutes_before_its_end() {
    let now = Timestamp::constant(100_000, 0);
    let of = |kind: &str, ends: Option<i64>| CapacityReservation {
        id: "cr-1".to_owned(),
        match_criteria: "targeted".to_owned(),
        reservation_type: kind.to_owned(),
        ends: ends.map(|minutes| now + SignedDuration::from_mins(minutes)),
        ..CapacityReservation::default()
    };
    let states = |each| {
        let (found, unknown) = reservations(vec![each], now);
        assert_eq!(unknown, Vec::<String>::new());
        found.into_iter().map(|each| each.state).collect::<Vec<_>>()
    };
    assert_eq!(states(of("capacity-block", Some(41))), [ReservationState::Active]);
    assert_eq!(states(of("capacity-block", Some(40))), [ReservationState::Expiring]);
    assert_eq!(states(of("capacity-block", Some(0))), []);
    assert_eq!(states(of("capacity-block", None)), [ReservationState::Active]);
    assert_eq!(states(of("", Some(1))), [ReservationState::Active]);
}

#[test]
fn a_reservation_in_words_that_nobody_knows_does_not_hide_the_others() {
    let of = |id: &str, criteria: &str, kind: &str| CapacityReservation {
        id: id.to_owned(),
        match_criteria: criteria.to_owned(),
        reservation_type: kind.to_owned(),
        ..CapacityReservation::default()
    };
    let all =
        vec![of("b", "open", "default"), of("c", "new", ""), of("d", "open", "new"), of("a", "open", "")];
    let (found, unknown) = reservations(all, Timestamp::UNIX_EPOCH);
    assert_eq!(found.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        unknown,
        [
            "capacity reservation c has unknown instance match criteria \"new\"",
            "capacity reservation d has unknown type \"new\"",
        ]
    );
}
