use expect_test::expect;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::Schedule;

#[test]
fn schedules_are_read_as_cron_reads_them() {
    let schedules = [
        "*/5 * * * *",
        "0 0 1 JAN MON-FRI",
        "@hourly",
        "@every 1h30m",
        "1,,2 * * * *",
        "x",
        "60 * * * *",
        "5-2 * * * *",
        "*/0 * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "@foo",
        "@every x",
        "@every 5",
        "@every 9999999999h",
        "a * * * *",
        "-1 * * * *",
        "* * 0 * *",
        "99999999999999999999 * * * *",
        "TZ=UTC",
        "CRON_TZ=Foo/Bar * * * * *",
        "TZ=europe/berlin * * * * *",
    ];
    let read =
        |text: &str| Schedule::parse(text).err().map_or_else(|| "fine".to_owned(), |why| why.to_string());
    let read: Vec<String> = schedules.iter().map(|text| format!("{text} => {}\n", read(text))).collect();
    expect![[r#"
        */5 * * * * => fine
        0 0 1 JAN MON-FRI => fine
        @hourly => fine
        @every 1h30m => fine
        1,,2 * * * * => fine
        x => expected exactly 5 fields, found 1: [x]
        60 * * * * => end of range (60) above maximum (59): 60
        5-2 * * * * => beginning of range (5) beyond end of range (2): 5-2
        */0 * * * * => step of range should be a positive number: */0
        1-2-3 * * * * => too many hyphens: 1-2-3
        1/2/3 * * * * => too many slashes: 1/2/3
        @foo => unrecognized descriptor: @foo
        @every x => failed to parse duration @every x: time: invalid duration "x"
        @every 5 => failed to parse duration @every 5: time: missing unit in duration "5"
        @every 9999999999h => failed to parse duration @every 9999999999h: time: invalid duration "9999999999h"
        a * * * * => failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax
        -1 * * * * => failed to parse int from : strconv.Atoi: parsing "": invalid syntax
        * * 0 * * => beginning of range (0) below minimum (1): 0
        99999999999999999999 * * * * => failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range
        TZ=UTC => invalid schedule format: runtime error: slice bounds out of range [:-1]
        CRON_TZ=Foo/Bar * * * * * => provided bad location Foo/Bar: unknown time zone Foo/Bar
        TZ=europe/berlin * * * * * => provided bad location europe/berlin: unknown time zone europe/berlin
    "#]]
    .assert_eq(&read.concat());
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next three times, each after the other.
fn next(schedule: &str, after: &str) -> String {
    let schedule = Schedule::parse(schedule).unwrap();
    let times = std::iter::successors(schedule.next_after(at(after)), |time| schedule.next_after(*time));
    times.take(3).map(|time| time.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_next_times_are_found() {
    let cases = [
        ("*/20 * * * *", "2026-01-01T00:00:00Z"),
        ("*/20 * * * *", "2026-01-01T00:19:59.9Z"),
        ("@yearly", "2026-01-01T00:00:00Z"),
        ("@monthly", "2026-01-31T00:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z"),
        ("@midnight", "2026-02-27T10:00:00Z"),
        ("@hourly", "2026-12-31T22:30:00Z"),
        ("@every 1h30m0.9s", "2026-01-01T00:00:10.5Z"),
        ("@every 1ms", "2026-01-01T00:00:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z"),
        ("0 0 31 * ?", "2026-01-31T00:00:00Z"),
        // Either day, as both are restricted; with a step, a star restricts.
        ("0 12 13 * FRI", "2026-11-01T00:00:00Z"),
        ("0 12 */10 * FRI", "2026-11-01T00:00:00Z"),
        ("0 12 */1 * FRI", "2026-11-01T00:00:00Z"),
        ("TZ=Asia/Kolkata 0 6 * * *", "2026-01-01T00:00:00Z"),
        // Clocks go from 2:00 to 3:00 on the 29th of March, and from 3:00 to 2:00 on the 25th of October.
        ("TZ=Europe/Berlin 30 2 * * *", "2026-03-27T12:00:00Z"),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-23T12:00:00Z"),
        ("TZ=Europe/Berlin 0 * 29 3 *", "2026-03-29T00:00:00Z"),
        // There they go by half an hour, and here at midnight.
        ("TZ=Australia/Lord_Howe 0 3 * * *", "2026-10-02T18:00:00Z"),
        ("TZ=America/Santiago 0 0 * * *", "2026-09-04T12:00:00Z"),
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|(text, after)| format!("{text} after {after}\n  {}\n", next(text, after)))
        .collect();
    expect![[r#"
        */20 * * * * after 2026-01-01T00:00:00Z
          2026-01-01T00:20:00Z 2026-01-01T00:40:00Z 2026-01-01T01:00:00Z
        */20 * * * * after 2026-01-01T00:19:59.9Z
          2026-01-01T00:20:00Z 2026-01-01T00:40:00Z 2026-01-01T01:00:00Z
        @yearly after 2026-01-01T00:00:00Z
          2027-01-01T00:00:00Z 2028-01-01T00:00:00Z 2029-01-01T00:00:00Z
        @monthly after 2026-01-31T00:00:00Z
          2026-02-01T00:00:00Z 2026-03-01T00:00:00Z 2026-04-01T00:00:00Z
        @weekly after 2026-01-01T00:00:00Z
          2026-01-04T00:00:00Z 2026-01-11T00:00:00Z 2026-01-18T00:00:00Z
        @midnight after 2026-02-27T10:00:00Z
          2026-02-28T00:00:00Z 2026-03-01T00:00:00Z 2026-03-02T00:00:00Z
        @hourly after 2026-12-31T22:30:00Z
          2026-12-31T23:00:00Z 2027-01-01T00:00:00Z 2027-01-01T01:00:00Z
        @every 1h30m0.9s after 2026-01-01T00:00:10.5Z
          2026-01-01T01:30:10Z 2026-01-01T03:00:10Z 2026-01-01T04:30:10Z
        @every 1ms after 2026-01-01T00:00:00Z
          2026-01-01T00:00:01Z 2026-01-01T00:00:02Z 2026-01-01T00:00:03Z
        0 0 29 2 * after 2026-01-01T00:00:00Z
          2028-02-29T00:00:00Z 2032-02-29T00:00:00Z 2036-02-29T00:00:00Z
        0 0 31 * ? after 2026-01-31T00:00:00Z
          2026-03-31T00:00:00Z 2026-05-31T00:00:00Z 2026-07-31T00:00:00Z
        0 12 13 * FRI after 2026-11-01T00:00:00Z
          2026-11-06T12:00:00Z 2026-11-13T12:00:00Z 2026-11-20T12:00:00Z
        0 12 */10 * FRI after 2026-11-01T00:00:00Z
          2026-11-01T12:00:00Z 2026-11-06T12:00:00Z 2026-11-11T12:00:00Z
        0 12 */1 * FRI after 2026-11-01T00:00:00Z
          2026-11-06T12:00:00Z 2026-11-13T12:00:00Z 2026-11-20T12:00:00Z
        TZ=Asia/Kolkata 0 6 * * * after 2026-01-01T00:00:00Z
          2026-01-01T00:30:00Z 2026-01-02T00:30:00Z 2026-01-03T00:30:00Z
        TZ=Europe/Berlin 30 2 * * * after 2026-03-27T12:00:00Z
          2026-03-28T01:30:00Z 2026-03-30T00:30:00Z 2026-03-31T00:30:00Z
        TZ=Europe/Berlin 30 2 * * * after 2026-10-23T12:00:00Z
          2026-10-24T00:30:00Z 2026-10-25T00:30:00Z 2026-10-25T01:30:00Z
        TZ=Europe/Berlin 0 * 29 3 * after 2026-03-29T00:00:00Z
          2026-03-29T01:00:00Z 2026-03-29T02:00:00Z 2026-03-29T03:00:00Z
        TZ=Australia/Lord_Howe 0 3 * * * after 2026-10-02T18:00:00Z
          2026-10-03T16:00:00Z 2026-10-04T16:00:00Z 2026-10-05T16:00:00Z
        TZ=America/Santiago 0 0 * * * after 2026-09-04T12:00:00Z
          2026-09-05T04:00:00Z 2026-09-07T03:00:00Z 2026-09-08T03:00:00Z
    "#]]
    .assert_eq(&told.concat());
}

#[test]
fn a_day_that_never_comes_has_no_time() {
    for never in ["0 0 30 2 *", "59 23 31 4,6,9,11 *", ", * * * *"] {
        assert_eq!(Schedule::parse(never).unwrap().next_after(at("2026-01-01T00:00:00Z")), None, "{never}");
    }
}

#[test]
fn the_last_time_is_found_however_long_ago_the_first_was() {
    let last = |schedule: &str, after: &str, until: &str| {
        Schedule::parse(schedule).unwrap().last_between(at(after), at(until)).map(|time| time.to_string())
    };
    let start = "2020-01-01T00:00:00Z";
    assert_eq!(last("* * * * *", start, "2026-05-05T05:05:59Z").as_deref(), Some("2026-05-05T05:05:00Z"));
    assert_eq!(last("@yearly", start, "2026-05-05T05:05:59Z").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(last("@every 7s", start, "2020-01-01T00:00:20Z").as_deref(), Some("2020-01-01T00:00:14Z"));
    assert_eq!(last("@every 7s", start, "2020-01-01T00:00:06Z"), None);
    assert_eq!(last("@hourly", start, "2020-01-01T00:59:59Z"), None);
    assert_eq!(last("@hourly", start, "2019-01-01T00:59:59Z"), None);
    assert_eq!(last("0 0 30 2 *", start, "2026-01-01T00:00:00Z"), None);
}

/// A field's text, and the numbers that it names, each written by itself.
fn field(low: i8, high: i8) -> impl Strategy<Value = (String, Vec<i8>)> {
    let all = move || (low..=high).collect::<Vec<_>>();
    prop_oneof![
        2 => Just(("*".to_owned(), all())),
        1 => (low..=high).prop_map(|number| (number.to_string(), vec![number])),
        1 => (low..=high, 2_i8..9).prop_map(move |(start, step)| {
            let numbers = (start..=high).step_by(usize::try_from(step).unwrap()).collect();
            (format!("{start}/{step}"), numbers)
        }),
        1 => (low..=high, low..=high).prop_map(|(a, b)| {
            let (a, b) = (a.min(b), a.max(b));
            (format!("{a}-{b}"), (a..=b).collect())
        }),
    ]
}

#[derive(Debug, Clone)]
struct Model {
    fields: Vec<(String, Vec<i8>)>,
}

impl Model {
    fn text(&self) -> String {
        self.fields.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn fits(&self, wall: DateTime) -> bool {
        let has = |index: usize, number: i8| self.fields[index].1.contains(&number);
        let (day, week) = (has(2, wall.day()), has(4, wall.weekday().to_sunday_zero_offset()));
        let is_any = |index: usize| self.fields[index].0 == "*";
        let by_day = if is_any(2) || is_any(4) { day && week } else { day || week };
        has(0, wall.minute()) && has(1, wall.hour()) && has(3, wall.month()) && by_day
    }

    /// Minute by minute.
    fn next_after(&self, zone: &TimeZone, after: Timestamp, minutes: i64) -> Option<Timestamp> {
        let minute = after.as_second().div_euclid(60);
        let times =
            (minute + 1..=minute + minutes).map(|minute| Timestamp::from_second(minute * 60).unwrap());
        times.into_iter().find(|time| self.fits(zone.to_datetime(*time)))
    }
}

fn model() -> impl Strategy<Value = Model> {
    let fields = (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6));
    fields.prop_map(|(minute, hour, day, month, week)| Model { fields: vec![minute, hour, day, month, week] })
}

/// UTC, zones with summer time, with it by half an hour, at midnight, just after it, and one that skipped a day.
const ZONES: [(&str, &str); 8] = [
    ("UTC", "2026-02-27T00:00:00Z"),
    ("Europe/Berlin", "2026-03-28T00:00:00Z"),
    ("America/New_York", "2026-10-31T00:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-03T00:00:00Z"),
    ("America/Santiago", "2026-09-04T00:00:00Z"),
    ("America/St_Johns", "2010-11-05T00:00:00Z"),
    ("Africa/Casablanca", "2026-02-13T00:00:00Z"),
    ("Pacific/Apia", "2011-12-29T00:00:00Z"),
];

const ENDS_OF_TIME: [Timestamp; 7] = [
    Timestamp::MIN,
    Timestamp::constant(-377_705_023_200, 0),
    Timestamp::constant(-1, 999_999_999),
    Timestamp::UNIX_EPOCH,
    Timestamp::constant(253_402_207_199, 0),
    Timestamp::constant(253_402_207_200, 0),
    Timestamp::MAX,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_next_time_is_the_first_minute_that_fits(
        model in model(), place in 0..ZONES.len(), seconds in 0_i64..4 * 86_400,
    ) {
        const MINUTES: i64 = 10 * 24 * 60;
        let (zone, around) = ZONES[place];
        let (zone, after) = (TimeZone::get(zone).unwrap(), at(around) + SignedDuration::from_secs(seconds));
        let schedule = Schedule::parse(&model.text()).unwrap().within(zone.clone());
        let found = schedule.next_after(after);
        let expected = model.next_after(&zone, after, MINUTES);
        let in_reach = found.filter(|time| *time <= after + SignedDuration::from_mins(MINUTES));
        prop_assert_eq!(in_reach, expected, "{}", model.text());
        if let Some(found) = found {
            prop_assert!(found > after && model.fits(zone.to_datetime(found)));
        }
    }

    #[test]
    fn the_ends_of_time_are_times_like_others(
        model in model(), place in 0..ZONES.len(), ends in (0..ENDS_OF_TIME.len(), 0..ENDS_OF_TIME.len()),
        every in prop::option::of(prop::sample::select(vec!["1s", "7s", "2562047h47m16s"])),
    ) {
        let zone = TimeZone::get(ZONES[place].0).unwrap();
        let text = every.map_or_else(|| model.text(), |every| format!("@every {every}"));
        let schedule = Schedule::parse(&text).unwrap().within(zone);
        let (after, until) = (ENDS_OF_TIME[ends.0], ENDS_OF_TIME[ends.1]);
        if let Some(next) = schedule.next_after(after) {
            prop_assert!(next > after, "{}", text);
        }
        if let Some(last) = schedule.last_between(after, until) {
            prop_assert!(after < last && last <= until, "{}", text);
        }
    }

    #[test]
    fn the_last_time_between_two_has_no_later_one(
        model in model(), place in 0..ZONES.len(), length in 0_i64..30 * 86_400,
    ) {
        let (zone, around) = ZONES[place];
        let (after, until) = (at(around), at(around) + SignedDuration::from_secs(length));
        let schedule = Schedule::parse(&model.text()).unwrap().within(TimeZone::get(zone).unwrap());
        match schedule.last_between(after, until) {
            Some(last) => {
                prop_assert!(last > after && last <= until);
                prop_assert!(schedule.next_after(last).is_none_or(|next| next > until));
            }
            None => prop_assert!(schedule.next_after(after).is_none_or(|next| next > until)),
        }
    }
}
