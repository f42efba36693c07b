package interop

import (
	"fmt"
	"slices"
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

// kind is what an outcome counts as.
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
	case o.blind && g.kind == foreign: // what fails then depends on the version, but not the form of messages
		for _, id := range o.failed {
			if id == formOfMessages || g.rest && !slices.Contains(g.checks, id) {
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
		{"does not apply, and fails on an unknown tool", blind(summarize(of(failure))), unknownCall, foreign},
		{"another check fails on an unknown tool", blind(summarize(of(failure))), gap{kind: foreign, rest: true}, kindOfFault},
		{"messages of a wrong form on an unknown tool", blind(outcome{failed: []string{formOfMessages}}), unknownCall, kindOfFault},
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
