//! `strftime_now`: the date, in the formats of C and Python.

use super::budget::error;
use minijinja::{Error, State, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// Variable that holds the time of a rendering; no template can write its name.
pub const NOW: &str = " now";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Seconds since 1970.
pub fn seconds(time: SystemTime) -> Value {
    Value::from(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// The function.
pub fn strftime_now(state: &mut State, format: String) -> Result<String, Error> {
    super::budget::take(state, 32 * format.len())?;
    let now = state.lookup(NOW).and_then(|now| now.as_i64()).unwrap_or(0);
    let (days, second) = (now.div_euclid(86_400), now.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let month_name = MONTHS[month as usize - 1];
    let weekday = DAYS[(days + 4).rem_euclid(7) as usize];
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(c) = letters.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let letter = letters.next();
        // `%-d`: without zeros in front.
        let (bare, letter) = match letter {
            Some('-') => (true, letters.next()),
            letter => (false, letter),
        };
        let number = |number: i64, width: usize| {
            if bare { number.to_string() } else { format!("{number:0width$}") }
        };
        text.push_str(&match letter {
            Some('Y') => year.to_string(),
            Some('y') => number(year.rem_euclid(100), 2),
            Some('m') => number(month, 2),
            Some('d') => number(day, 2),
            Some('H') => number(hour, 2),
            Some('I') => number((hour + 11) % 12 + 1, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second % 60, 2),
            Some('j') => number(days - days_before(year) + 1, 3),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_string(),
            Some('B') => month_name.to_string(),
            Some('b') => month_name[..3].to_string(),
            Some('A') => weekday.to_string(),
            Some('a') => weekday[..3].to_string(),
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{:02}", second % 60),
            Some('%') => "%".to_string(),
            other => {
                let other = other.map_or(String::new(), String::from);
                return Err(error(format!("strftime_now: the format %{other} is not supported")));
            }
        });
    }
    Ok(text)
}

/// Days from 1970 to the first day of a year.
fn days_before(year: i64) -> i64 {
    let past = year - 1;
    365 * (year - 1970) + (past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)) - 477
}

/// Year, month and day of a number of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(366);
    while days_before(year + 1) <= days {
        year += 1;
    }
    let leap = days_before(year + 1) - days_before(year) == 366;
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (mut month, mut rest) = (1, days - days_before(year));
    for length in lengths {
        if rest < length {
            break;
        }
        (month, rest) = (month + 1, rest - length);
    }
    (year, month, rest + 1)
}
