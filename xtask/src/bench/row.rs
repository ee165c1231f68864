//! What benchmarks say, and what is made of it.

use std::fmt::Write as _;

/// One line of a benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    work: String,
    measured: String,
    goal: String,
    met: Met,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Yes,
    No,
    /// Nothing was asked of it.
    Free,
}

impl Row {
    /// `None` for a line that is something else.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let ["row", work, measured, goal, met] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
        let met = match met {
            "yes" => Met::Yes,
            "no" => Met::No,
            "-" => Met::Free,
            _ => return None,
        };
        Some(Self { work: work.into(), measured: measured.into(), goal: goal.into(), met })
    }
}

/// The goals that are not met: those that a row misses, and those that no row speaks of.
pub(super) fn missed(rows: &[Row], goals: &[&str]) -> Vec<String> {
    let missed = rows.iter().filter(|row| row.met == Met::No).map(|row| row.work.clone());
    let has_goal = |goal: &str| rows.iter().any(|row| row.work == goal && row.met != Met::Free);
    let unsaid = goals.iter().filter(|goal| !has_goal(goal)).map(|goal| format!("{goal} (not measured)"));
    missed.chain(unsaid).collect()
}

/// The goals in their order, and everything else that was measured.
pub(super) fn table(rows: &[Row], goals: &[&str]) -> String {
    let mut lines = vec![["work", "measured", "goal", "met"].map(str::to_owned)];
    let cells = |row: &Row| {
        let met = match row.met {
            Met::Yes => "yes",
            Met::No => "NO",
            Met::Free => "",
        };
        [row.work.clone(), row.measured.clone(), row.goal.clone(), met.to_owned()]
    };
    lines.extend(goals.iter().flat_map(|goal| rows.iter().filter(move |row| row.work == *goal)).map(cells));
    lines.push(["beside these", "", "", ""].map(str::to_owned));
    lines.extend(rows.iter().filter(|row| !goals.contains(&&*row.work)).map(cells));

    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let [work, measured, goal] = [0, 1, 2].map(width);
    lines.iter().fold(String::new(), |mut table, [a, b, c, d]| {
        let line = format!("{a:<work$}  {b:>measured$}  {c:>goal$}  {d}");
        writeln!(table, "{}", line.trim_end()).expect("a string takes everything");
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Vec<Row> {
        lines.iter().filter_map(|line| Row::parse(line)).collect()
    }

    #[test]
    fn a_goal_is_missed_by_a_figure_or_by_silence() {
        let rows = rows(&[
            "row\tappend\t5/s\t≥ 4/s\tyes",
            "row\tfork\t2 s\t≤ 1 s\tno",
            "row\tlist\t2 s\t\t-",
            "row\tother\t2 s\t≤ 1 s\tno",
            "warming up",
            "row\ttoo\tshort",
            "row\todd\t1\t2\tmaybe",
        ]);
        assert_eq!(rows.len(), 4);
        let missed = missed(&rows, &["append", "fork", "list", "open"]);
        assert_eq!(missed, ["fork", "other", "list (not measured)", "open (not measured)"]);
    }

    #[test]
    fn the_table_has_the_goals_first_and_in_their_order() {
        let rows = rows(&["row\tb\t2 s\t≤ 1 s\tno", "row\tmore\t7 µs\t\t-", "row\ta\t10/s\t≥ 4/s\tyes"]);
        let table = table(&rows, &["a", "b"]);
        let expected = "\
work          measured   goal  met
a                 10/s  ≥ 4/s  yes
b                  2 s  ≤ 1 s  NO
beside these
more              7 µs
";
        assert_eq!(table, expected);
    }
}
