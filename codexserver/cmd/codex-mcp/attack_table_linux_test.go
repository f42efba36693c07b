package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// attackColumns are the columns of docs/project/attacks.md after the first: the entries, the engines and
// the tiers.
var attackColumns = []struct{ key, title string }{
	{"stdio", "stdio"}, {"http", "HTTP"}, {"task", "task"}, {"page", "page"},
	{"thread", "native, `thread`"}, {"namespaces", "native, `namespaces`"}, {"bridge", "installed Codex"},
}

const attackIntro = `# Attacks

TestEndToEndAttacks and TestRealAttacks play each of these attacks against the program: over standard input and output,
over HTTP, in a task, and with the approvals page, on the native engine in both tiers of its sandbox, and on the
installed Codex. A hostile model, or a command that it runs in the sandbox, tries to do more than was approved.
"held" means that the test plays the attack there, and that nothing happened. A number is the reason why the attack
does not exist there. A test writes this page.

`

// TestAttackTable compares docs/project/attacks.md with the attacks that are played; -update writes it.
func TestAttackTable(t *testing.T) {
	var table strings.Builder
	var reasons []string
	note := func(reason string) string {
		for i, r := range reasons {
			if r == reason {
				return fmt.Sprintf("%d", i+1)
			}
		}
		reasons = append(reasons, reason)
		return fmt.Sprintf("%d", len(reasons))
	}
	table.WriteString("| attack |")
	for _, c := range attackColumns {
		table.WriteString(" " + c.title + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(attackColumns)) + "\n")
	for _, a := range attacks {
		table.WriteString("| " + a.name + " |")
		for _, c := range attackColumns {
			cell := "held"
			switch reason := a.never[c.key]; {
			case reason != "":
				cell = note(reason)
			case a.try == nil:
				cell += " " + note("played by "+a.elsewhere)
				checkTest(t, a.elsewhere)
			}
			table.WriteString(" " + cell + " |")
		}
		table.WriteString("\n")
	}
	table.WriteString("\n")
	for i, r := range reasons {
		fmt.Fprintf(&table, "%d. %s.\n", i+1, r)
	}
	want := attackIntro + table.String()
	const page = "../../../docs/project/attacks.md"
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("docs/project/attacks.md (-have +want); -update writes it:\n%s", diff)
	}
}

// checkTest fails if a test does not exist. It is named by its folder and its function.
func checkTest(t *testing.T, name string) {
	t.Helper()
	dir, function, _ := strings.Cut(name, " ")
	files, err := filepath.Glob(filepath.Join("../../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "func "+function+"(") {
			return
		}
	}
	t.Errorf("there is no test %s", name)
}
