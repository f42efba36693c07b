package interop

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// check is one of a scenario.
type check struct{ ID, Status, ErrorMessage string }

// outcome is what the suite found in a scenario.
type outcome struct {
	passed    int      // checks
	skipped   []string // the ids of the checks, sorted
	failed    []string
	why       []string // what the suite said of those that failed
	blind     bool     // a call found no tool of its name
	complaint string   // what a client printed
}

// formOfMessages is a check that the suite adds to every scenario. It passes whatever the
// scenario finds, so alone it is no pass.
const formOfMessages = "wire-schema-valid"

func summarize(checks []check) (o outcome) {
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			if c.ID != formOfMessages {
				o.passed++
			}
		case "INFO": // judges nothing
		case "SKIPPED":
			o.skipped = append(o.skipped, c.ID)
		default:
			o.failed = append(o.failed, c.ID)
			o.why = append(o.why, c.ID+": "+c.Status+": "+c.ErrorMessage)
		}
	}
	slices.Sort(o.skipped)
	slices.Sort(o.failed)
	o.failed = slices.Compact(o.failed)
	return o
}

// kind is what a cell of the table counts as.
type kind string

const (
	passed      kind = "passed"
	partly      kind = "passed in part"
	skipped     kind = "skipped"
	foreign     kind = "does not apply"
	failed      kind = "failed"
	kindOfFault kind = "" // the test fails
)

// judge returns what an outcome counts as, and why it is not what the gap says. Without a
// gap everything must pass.
func (o outcome) judge(g gap) (kind, string) {
	switch g.kind {
	case "":
		switch {
		case len(o.failed) > 0:
			return kindOfFault, fmt.Sprintf("failed: %q", o.failed)
		case o.blind:
			return kindOfFault, "the server has no tool of the name that was called, so a pass says nothing"
		case len(o.skipped) > 0:
			return kindOfFault, fmt.Sprintf("skipped without a reason: %q", o.skipped)
		case o.passed == 0:
			return kindOfFault, "no check passed"
		case o.complaint != "":
			return kindOfFault, "the client printed: " + o.complaint
		}
		return passed, ""
	case skipped:
		if len(o.failed) > 0 || o.blind || o.complaint != "" || !slices.Equal(o.skipped, g.checks) {
			return kindOfFault, fmt.Sprintf("skipped %q, want %q; failed %q; printed %q", o.skipped, g.checks, o.failed, o.complaint)
		}
		if o.passed > 0 {
			return partly, ""
		}
		return skipped, ""
	}
	switch {
	case o.blind && g.kind == foreign: // what fails then depends on the version
		for _, id := range o.failed {
			if !slices.Contains(g.checks, id) {
				return kindOfFault, fmt.Sprintf("%s failed, want only %q", id, g.checks)
			}
		}
	case !g.all && !slices.Equal(o.failed, g.checks):
		return kindOfFault, fmt.Sprintf("failed %q, want %q", o.failed, g.checks)
	case len(o.failed) == 0 && len(o.skipped) == 0 && o.passed > 0 && !g.all:
		return kindOfFault, "passed, although: " + g.why
	}
	if g.rest {
		return partly, ""
	}
	return g.kind, ""
}

// verdicts are what the suites found.
type verdicts struct {
	titles    []string            // of the selections
	scenarios map[string][]string // of all suites, by side

	mu       sync.Mutex
	outcomes map[column]map[string]outcome
}

// add adds the scenarios of a side that are not there yet.
func (v *verdicts) add(side string, names []string) {
	if v.scenarios == nil {
		v.scenarios = map[string][]string{}
	}
	for _, name := range names {
		if !slices.Contains(v.scenarios[side], name) {
			v.scenarios[side] = append(v.scenarios[side], name)
		}
	}
}

func (v *verdicts) put(c column, found map[string]outcome) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.outcomes == nil {
		v.outcomes = map[column]map[string]outcome{}
	}
	v.outcomes[c] = found
}

// reasons numbers reasons in the order of their first use.
type reasons []string

func (r *reasons) number(why string) int {
	i := slices.Index(*r, why)
	if i < 0 {
		i, *r = len(*r), append(*r, why)
	}
	return i + 1
}

// counts are those of a column.
type counts struct {
	scenarios               map[kind]int
	checks, skipped, failed int // of the scenarios that apply
}

// write writes the tables, and returns what is not as the gaps say.
func (v *verdicts) write(b *bytes.Buffer) (faults []string) {
	var why reasons
	total := map[column]*counts{}
	used := map[gapKey]bool{}
	var tables bytes.Buffer
	for _, side := range []string{"server", "client"} {
		var columns []column
		fmt.Fprintf(&tables, "\n| a %s |", side)
		for _, on := range []subject{featured, itself, caller} {
			for i, s := range selections {
				if on.side() == side {
					columns = append(columns, column{s, on})
					fmt.Fprintf(&tables, " %s, %s |", on, v.titles[i])
				}
			}
		}
		tables.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
		var rows []row
		for _, row := range rowsOf(v.scenarios[side]) {
			var line strings.Builder
			for _, c := range columns {
				var cells []string // of the scenarios that the selection has
				for _, scenario := range row.scenarios {
					o, ran := v.outcomes[c][scenario]
					if !ran {
						continue
					}
					key, g := gapOf(c.on, scenario)
					used[key] = true
					k, fault := o.judge(g)
					if fault != "" {
						faults = append(faults, fmt.Sprintf("%s on %s, %s: %s\n%s", scenario, c.on, c.selection, fault, strings.Join(o.why, "\n")))
					}
					if total[c] == nil {
						total[c] = &counts{scenarios: map[kind]int{}}
					}
					total[c].add(k, o)
					cells = append(cells, cellOf(k, o, g, &why))
				}
				n := len(cells)
				if cells = slices.Compact(cells); n > 1 {
					fmt.Fprintf(&line, " %d × %s |", n, strings.Join(cells, ", "))
				} else {
					line.WriteString(strings.TrimRight(" "+strings.Join(cells, ""), " ") + " |")
				}
			}
			row.cells = line.String()
			rows = append(rows, row)
		}
		for _, row := range joined(rows) {
			fmt.Fprintf(&tables, "| %s |%s\n", row.name, row.cells)
		}
	}
	for key := range gaps {
		if !used[key] {
			faults = append(faults, fmt.Sprintf("no suite has the scenario %s for the %s", key.scenario, key.on))
		}
	}
	v.writeTotals(b, total)
	b.Write(tables.Bytes())
	b.WriteString("\nThe reasons:\n\n")
	for i, r := range why {
		fmt.Fprintf(b, "%d. %s\n", i+1, r)
	}
	return faults
}

// row is a scenario, or a group of them.
type row struct {
	name      string
	scenarios []string
	cells     string // after the first one
}

// joined makes one row of all rows with the same cells, if the names are short enough.
func joined(rows []row) (all []row) {
	const longest = 200
	for _, r := range rows {
		i := slices.IndexFunc(all, func(o row) bool { return o.cells == r.cells && len(o.name)+len(r.name)+2 <= longest })
		if i < 0 {
			all = append(all, r)
			continue
		}
		all[i].name += ", " + r.name
	}
	return all
}

// rowsOf makes one row of the scenarios of a group.
func rowsOf(scenarios []string) (rows []row) {
	for _, s := range scenarios {
		name := groupOf(s)
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if i < 0 {
			i, rows = len(rows), append(rows, row{name: name})
		}
		rows[i].scenarios = append(rows[i].scenarios, s)
	}
	return rows
}

func cellOf(k kind, o outcome, g gap, why *reasons) string {
	switch k {
	case passed:
		return "passed"
	case partly:
		if g.rest {
			return fmt.Sprintf("%d passed, %d – (%d)", o.passed, len(o.failed)+len(o.skipped), why.number(g.why))
		}
		return fmt.Sprintf("%d passed, %d skipped (%d)", o.passed, len(o.skipped), why.number(g.why))
	case skipped:
		return fmt.Sprintf("skipped (%d)", why.number(g.why))
	case foreign:
		return fmt.Sprintf("– (%d)", why.number(g.why))
	case failed:
		return fmt.Sprintf("failed (%d)", why.number(g.why))
	}
	return "NO"
}

func (c *counts) add(k kind, o outcome) {
	c.scenarios[k]++
	switch k {
	case passed, partly, skipped, failed:
		c.checks += o.passed
		c.skipped += len(o.skipped)
	}
	if k == failed {
		c.failed += len(o.failed)
	}
}

func (v *verdicts) writeTotals(b *bytes.Buffer, total map[column]*counts) {
	kinds := []kind{passed, partly, skipped, failed, foreign}
	b.WriteString("| what | suite | scenarios |")
	for _, k := range kinds {
		fmt.Fprintf(b, " %s |", k)
	}
	b.WriteString(" checks passed | skipped | failed |\n|---|---|---|" + strings.Repeat("---|", len(kinds)+3) + "\n")
	for _, on := range []subject{featured, itself, caller} {
		for i, s := range selections {
			c := total[column{s, on}]
			if c == nil {
				continue
			}
			sum := 0
			for _, n := range c.scenarios {
				sum += n
			}
			fmt.Fprintf(b, "| %s | %s | %d |", on, v.titles[i], sum)
			for _, k := range kinds {
				fmt.Fprintf(b, " %d |", c.scenarios[k])
			}
			fmt.Fprintf(b, " %d | %d | %d |\n", c.checks, c.skipped, c.failed)
		}
	}
}

// TestVerdict checks that only what was tested and holds counts as passed.
func TestVerdict(t *testing.T) {
	const success, skip, failure, warning, info = "SUCCESS", "SKIPPED", "FAILURE", "WARNING", "INFO"
	form := check{ID: formOfMessages, Status: success}
	of := func(statuses ...string) (checks []check) {
		for i, s := range statuses {
			checks = append(checks, check{ID: fmt.Sprint("c", i), Status: s})
		}
		return append(checks, form)
	}
	blind := func(o outcome) outcome { o.blind = true; return o }
	for _, tt := range []struct {
		name string
		o    outcome
		g    gap
		want kind
	}{
		{"passed", summarize(of(success, info)), gap{}, passed},
		{"a failure", summarize(of(success, failure)), gap{}, kindOfFault},
		{"a warning", summarize(of(success, warning)), gap{}, kindOfFault},
		{"a status that is new", summarize(of(success, "UNKNOWN")), gap{}, kindOfFault},
		{"skipped", summarize(of(skip, skip)), gap{}, kindOfFault},
		{"skipped beside a pass", summarize(of(success, skip)), gap{}, kindOfFault},
		{"no check", summarize(of()), gap{}, kindOfFault},
		{"information alone", summarize(of(info)), gap{}, kindOfFault},
		{"a pass on an unknown tool", blind(summarize(of(success))), gap{}, kindOfFault},
		{"a client that complains", outcome{passed: 1, complaint: "EOF"}, gap{}, kindOfFault},

		{"skipped, with its reason", summarize(of(skip, skip)), gap{kind: skipped, checks: []string{"c0", "c1"}}, skipped},
		{"a part skipped, with its reason", summarize(of(success, skip)), gap{kind: skipped, checks: []string{"c1"}}, partly},
		{"more skipped than that", summarize(of(skip, skip)), gap{kind: skipped, checks: []string{"c0"}}, kindOfFault},
		{"not skipped any more", summarize(of(success)), gap{kind: skipped, checks: []string{"c0"}}, kindOfFault},
		{"skipped and failed", summarize(of(skip, failure)), gap{kind: skipped, checks: []string{"c0"}}, kindOfFault},
		{"skipped on an unknown tool", blind(summarize(of(success, skip))), gap{kind: skipped, checks: []string{"c1"}}, kindOfFault},

		{"does not apply", summarize(of(success, failure)), gap{kind: foreign, checks: []string{"c1"}}, foreign},
		{"another check fails", summarize(of(failure, failure)), gap{kind: foreign, checks: []string{"c1"}}, kindOfFault},
		{"applies after all", summarize(of(success)), gap{kind: foreign}, kindOfFault},
		{"does not apply, and is skipped", summarize(of(skip)), gap{kind: foreign}, foreign},
		{"does not apply, and passes on an unknown tool", blind(summarize(of(success))), gap{kind: foreign, checks: []string{"c0"}}, foreign},
		{"another check fails on an unknown tool", blind(summarize(of(failure))), gap{kind: foreign}, kindOfFault},
		{"nothing of it applies", summarize(of(success, failure)), gap{kind: foreign, all: true}, foreign},
		{"a part does not apply", summarize(of(success, failure)), gap{kind: foreign, checks: []string{"c1"}, rest: true}, partly},
		{"known to fail", summarize(of(success, failure)), gap{kind: failed, checks: []string{"c1"}}, failed},
		{"known to fail, and passes", summarize(of(success)), gap{kind: failed, checks: []string{"c0"}}, kindOfFault},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, fault := tt.o.judge(tt.g)
			if got != tt.want || (fault != "") != (tt.want == kindOfFault) {
				t.Errorf("%q, %q; want %q", got, fault, tt.want)
			}
		})
	}
}

// TestVerdictsCountApart checks the figures of the tables.
func TestVerdictsCountApart(t *testing.T) {
	const scenario = "ping"
	v := &verdicts{titles: []string{"one", "two", "three"}}
	v.add("server", []string{scenario})
	for i, o := range []outcome{{passed: 2}, {skipped: []string{"c"}}, {passed: 2, blind: true}} {
		v.put(column{selections[i], featured}, map[string]outcome{scenario: o})
	}
	var b bytes.Buffer
	faults := v.write(&b)
	for _, line := range []string{
		"| test server | one | 1 | 1 | 0 | 0 | 0 | 0 | 2 | 0 | 0 |",
		"| test server | two | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
		"| test server | three | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
		"| ping | passed | NO | NO | | | |",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if n := len(faults) - len(gaps); n != 2 { // no gap is used
		t.Errorf("%d faults, want 2", n)
	}
	if t.Failed() {
		t.Log(b.String())
	}
}

// TestReadList checks that scenarios that a version does not require are read too.
func TestReadList(t *testing.T) {
	got := fmt.Sprint(readList("Required for 2026-07-28 (3 scenarios, frozen):\n\nServer scenarios (test against a server):\n  - ping [2025-06-18]\n\n" +
		"Client scenarios (test against a client):\n  - initialize\n\nRun and reported, but never scored:\n  extension (2):\n    - auth/dpop [client]\n    - tasks-lifecycle [server]\n"))
	if want := "map[client:[initialize auth/dpop] server:[ping tasks-lifecycle]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
