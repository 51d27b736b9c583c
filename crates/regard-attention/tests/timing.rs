//! The times of the parts of decoding. Alone in its binary, because all decoding is counted.

use regard_attention::plan::{Part, count_step, measure, timed};
use std::time::Duration;

#[test]
fn inner_parts_are_not_counted_for_outer_ones() {
    let wait = |ms| std::thread::sleep(Duration::from_millis(ms));
    timed(Part::Search, || wait(1));
    let ((), found) = measure(|| {
        timed(Part::Rest, || {
            wait(5);
            timed(Part::Products, || wait(400));
            count_step();
        });
        let panicked = std::panic::catch_unwind(|| timed(Part::Attention, || panic!("stop")));
        assert!(panicked.is_err());
        wait(400);
    });
    let time = |part: Part| found.times[part as usize].as_millis();
    assert_eq!(found.steps, 1);
    assert!(time(Part::Products) >= 400, "{found:?}");
    // Neither the products nor the time outside of all parts.
    assert!((5..400).contains(&time(Part::Rest)), "{found:?}");
    assert!(time(Part::Attention) < 400, "{found:?}");
    assert_eq!(time(Part::Search), 0, "{found:?}");
    // A measurement that fails does not go on.
    let failed = std::panic::catch_unwind(|| measure(|| panic!("stop")));
    assert!(failed.is_err());
    timed(Part::Search, || wait(1));
    assert_eq!(measure(|| ()).1.times[Part::Search as usize], Duration::ZERO);
}
