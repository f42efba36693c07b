package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

const hostileText = "<script>x</script>&lt;\u202e\x1b[2J\x1b]0;t\x07\u200b"

// writeRecord writes lines to a record, a second apart.
func writeRecord(t *testing.T, path string, lines ...audit.Line) {
	t.Helper()
	l, err := audit.Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		line.Time = time.Date(2026, 11, 24, 10, 0, i, 0, time.UTC)
		text, err := line.Append(nil)
		if err == nil {
			_, err = l.Write(append(text, '\n'))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// aRecord returns the lines of a record with one entry of each kind.
func aRecord(t *testing.T) []audit.Line {
	question := func(m protocol.EventMsg) []byte {
		raw, err := protocol.AppendEvent(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	three, zero := 3, 0
	sum := strings.Repeat("ab", 32)
	patch := map[string]protocol.FileChange{"/work/a": {Add: &protocol.FileContent{Content: "x " + hostileText + "\n"}}}
	return []audit.Line{
		{Thread: "one", ID: "1", Question: question(protocol.ExecApprovalRequest{Command: []string{"make", hostileText}, Cwd: "/work", Reason: "to build"}), Decision: "approved", By: "client", Waited: 1500},
		{Thread: "one", ID: "2", Effect: audit.Begins, Kind: "command", DecidedBy: "1", Command: []string{"make", hostileText}, Cwd: "/work", Basis: &protocol.Basis{Policy: "untrusted", Sandbox: "workspace-write", Ran: "outside"}},
		{Thread: "one", Effect: audit.Ends, Of: "2", Exit: &three, Took: 1234},
		{Thread: "two", Principal: "ann", ID: "3", Question: question(protocol.PatchApprovalRequest{Changes: patch}), Decision: "denied", By: "approver", Approver: "bob", Feedback: hostileText, Reason: "declined"},
		{Thread: "two", Effect: audit.Refused, Kind: "command", Command: []string{"rm"}, Words: "never"},
		{Thread: "two", ID: "4", Effect: audit.Begins, Kind: "patch", Diff: "=== /work/b\n+y\n"},
		{Thread: "two", Effect: audit.Ends, Of: "4", Exit: &zero, Files: []audit.File{{Path: "/work/b", Sum: sum}}, MoreFile: 2},
		{Thread: "two", ID: "5", Effect: audit.Begins, Kind: "tool", Tool: "s/t"},
		{Thread: "two", Effect: audit.Changed, Files: []audit.File{{Path: "/work/b", Kind: "add", Sum: sum}}, Diff: "+y\n"},
	}
}

// TestLog runs the commands about a record.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	path := filepath.Join(dir, "log")
	lines := aRecord(t)
	writeRecord(t, path, lines...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	head := report.Head.String()
	if err := os.WriteFile(filepath.Join(dir, "changed"), bytes.Replace(whole, []byte(`"exit":3`), []byte(`"exit":0`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "short"), whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte(`{"time":"2026-01-01T00:00:00Z","threadId":"t","question":{"type":"x"},"decision":"denied","by":"rule"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "page.html")
	for _, tt := range []struct {
		args   string
		status int
		want   []string // in order
		not    string
	}{
		{"log verify LOG", 0, []string{"10 records, none changed, missing or reordered\nhead: " + head + "\n"}, ""},
		{"-c approvals.log=LOG log verify", 0, []string{"10 records"}, ""},
		{"log verify", 1, []string{"names no approvals.log"}, ""},
		{"log head LOG", 0, []string{head + "\n"}, "records"},
		{"log verify --head " + head + " LOG", 0, []string{"10 records"}, ""},
		{"log verify --head 10:x LOG", 1, []string{"--head: want a head"}, ""},
		{"log verify --head " + head + " DIR/short", 1, []string{"short: it is cut: record 10 is missing, which the kept head has"}, "none changed"},
		{"log verify DIR/short", 0, []string{"record 8 has no end", "9 records"}, ""},
		{"log verify DIR/changed", 1, []string{"changed:3: record 3: it was changed"}, "none changed"},
		{"log head DIR/changed", 1, []string{"changed:3: record 3: it was changed"}, ""},
		{"log verify DIR/old", 0, []string{"1 older lines have no chain", "no records"}, ""},
		{"log verify DIR/none", 1, []string{"none"}, ""},
		{"log verify a b", 2, nil, ""},
		{"log", 2, []string{"want log head"}, ""},
		{"log show LOG", 0, []string{
			"thread one", "asked: make $'<script>", `\u{202e}\x1b[2J`, "in /work, because: to build", "approved by client after 1.5s", "ran: make", "without a sandbox", "exit code 3 after 1.234s",
			"thread two for ann", "asked: a patch of /work/a", "denied by approver bob; reason: declined; feedback: <script>", "+x <script>",
			"refused without a question: rm", "because: never",
			"not asked", "ran: a patch", "=== /work/b", "+y", "exit code 0", "abab", "/work/b", "2 more files",
			"ran: the tool s/t", "ended: the end was not reported before the server ended", "the turn has changed", "/work/b add", "+y",
		}, ""},
		{"log show --thread tw LOG", 0, []string{"thread two"}, "thread one"},
		{"log show --since 2026-11-24T10:00:07Z LOG", 0, []string{"the tool s/t"}, "thread one"},
		{"log show --since 1s LOG", 0, []string{"the end was not reported"}, "thread one"},
		{"log show --since x LOG", 1, []string{"--since: want a time"}, ""},
		{"log show --thread none LOG", 0, []string{"there are no records of that"}, ""},
		{"log show DIR/old", 0, []string{"asked:", "denied by rule"}, ""},
		{"log show --html PAGE LOG", 0, nil, "thread"},
		{"log show --html PAGE LOG", 1, []string{"exists; name a new file"}, ""},
	} {
		args := strings.NewReplacer("LOG", path, "DIR", dir, "PAGE", page).Replace(tt.args)
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), "codex-mcp", strings.Fields(args), &stdout, &stderr)
		text := stdout.String() + stderr.String()
		if status != tt.status || control.MatchString(text) || tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: status %d, want %d:\n%q", tt.args, status, tt.status, text)
		}
		rest := text
		for _, want := range tt.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: no %q in\n%s", tt.args, want, text)
				break
			}
			rest = after
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]int{}
	for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(string(text), -1) {
		name, _, _ := strings.Cut(strings.Trim(tag, "</>"), " ")
		tags[name]++
	}
	want := map[string]int{"!doctype": 1, "html": 2, "head": 2, "meta": 4, "title": 2, "style": 2, "body": 2, "h1": 2, "section": 12, "p": tags["p"], "pre": 6}
	if diff := cmp.Diff(want, tags); diff != "" || control.MatchString(strings.ReplaceAll(string(text), "\n", "")) {
		t.Errorf("the page has other tags (-want +got):\n%s", diff)
	}
}

// TestLogIsBounded shows a record with very long texts and very many entries: what is left out is said.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("a\u202e<b>", 1<<20)
	lines := []audit.Line{{Thread: "t", ID: "x", Effect: audit.Begins, Kind: "command", Command: []string{long}, Diff: long}}
	for i := range 3000 {
		lines = append(lines, audit.Line{Thread: fmt.Sprint("thread-", i), Effect: audit.Refused, Kind: "command", Command: []string{strings.Repeat("y", 10<<10)}, Words: "never"})
	}
	writeRecord(t, path, lines...)
	for name, html := range map[string]bool{"text": false, "page": true} {
		var out bytes.Buffer
		o := &options{}
		if html {
			o.record.html = filepath.Join(t.TempDir(), "page")
		}
		if err := showLog(o, audit.Paths(path), &out); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if html {
			raw, err := os.ReadFile(o.record.html)
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		if len(text) > 2*maxShownPage || !strings.Contains(text, "older entries are left out") || !strings.Contains(text, "thread thread-2999") {
			t.Errorf("%s: %d bytes, which begin with %.300q", name, len(text), text)
		}
	}
	e := &audit.Entry{Began: &lines[0]}
	size, words := 0, 0
	for _, r := range rows(e) {
		size += len(r.text)
		words += strings.Count(r.text, "bytes are left out here; the record has them")
	}
	if size > 16*maxShownText || words != 2 {
		t.Errorf("an entry has %d bytes, and says %d times what it leaves out", size, words)
	}
}
