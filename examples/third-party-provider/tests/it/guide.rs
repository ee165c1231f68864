//! The guide says what there is.

const GUIDE: &str = include_str!("../../README.md");

#[test]
fn the_guide_names_every_check_and_no_other() {
    let rows = GUIDE.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let named: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let checks: Vec<&str> = subagent::testing::names().collect();
    for check in &checks {
        assert!(named.contains(check), "the guide does not name `{check}`");
    }
    for name in &named {
        assert!(checks.contains(name), "the guide names `{name}`, which is no check");
    }
}
