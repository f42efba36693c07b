package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxShownText = 64 << 10 // bytes of one text
	maxShownPage = 16 << 20 // bytes of all entries
)

// A row is a part of a timeline. Its text has no character that a person would not see.
type row struct {
	kind rowKind
	text string
}

type rowKind string

const (
	rowTime rowKind = "time" // the first one of an entry
	rowSaid rowKind = "said"
	rowNo   rowKind = "no" // refused, failed or unknown
	rowDiff rowKind = "diff"
)

// rows returns an entry as rows.
func rows(e *audit.Entry) (all []row) {
	add := func(kind rowKind, format string, args ...any) {
		all = append(all, row{kind, short(elicit.OneLine(fmt.Sprintf(format, args...), 0))})
	}
	first := e.First()
	who := ""
	if first.Principal != "" {
		who = " for " + first.Principal
	}
	add(rowTime, "%s  thread %s%s", first.Time.Local().Format(time.DateTime), first.Thread, who)
	if d := e.Decided; d != nil {
		add(rowSaid, "asked: %s", asked(d))
		kind := rowSaid
		if !d.Approves() {
			kind = rowNo
		}
		add(kind, "%s", decided(d))
		if e.Began == nil {
			all = append(all, diffRow(askedDiff(d))...)
			if d.Approves() && d.ID != "" {
				add(rowNo, "nothing is recorded that ran because of it")
			}
		}
	}
	if b := e.Began; b != nil {
		if e.Decided == nil {
			add(rowSaid, "not asked%s", basisWords(b.Basis))
		}
		add(rowSaid, "ran: %s", what(b))
		if e.Ended == nil {
			add(rowNo, "its end is not recorded: it still runs, or its server was killed")
		}
		all = append(all, diffRow(b.Diff)...)
	}
	if l := e.Ended; l != nil {
		switch {
		case l.Exit == nil:
			add(rowNo, "ended: %s", cmp.Or(l.Words, "how is not known"))
		case *l.Exit != 0:
			add(rowNo, "ended: exit code %d after %s %s", *l.Exit, milliseconds(l.Took), l.Words)
		default:
			add(rowSaid, "ended: exit code 0 after %s", milliseconds(l.Took))
		}
		all = append(all, fileRows(l)...)
	}
	if l := e.Other; l != nil {
		switch l.Effect {
		case audit.Refused:
			add(rowNo, "refused without a question: %s", what(l))
			add(rowNo, "because: %s", l.Words)
		default:
			add(rowSaid, "the turn has changed")
			all = append(all, fileRows(l)...)
		}
		all = append(all, diffRow(l.Diff)...)
	}
	return all
}

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }

func fileRows(l *audit.Line) (all []row) {
	for _, f := range l.Files {
		all = append(all, row{rowSaid, short(elicit.OneLine(fmt.Sprintf("%s  %s %s", f.Sum, f.Path, f.Kind), 0))})
	}
	if l.MoreFile > 0 {
		all = append(all, row{rowNo, fmt.Sprintf("%d more files, which the record does not have", l.MoreFile)})
	}
	return all
}

func diffRow(diff string) []row {
	if diff == "" {
		return nil
	}
	head := text.Head(diff, maxShownText)
	shown := elicit.ShowText(head)
	if left := len(diff) - len(head); left > 0 {
		shown += fmt.Sprintf("\n[%d bytes are left out here; the record has them]", left)
	}
	return []row{{rowDiff, shown}}
}

// short bounds a text, and says what it leaves out.
func short(s string) string {
	if len(s) <= maxShownText {
		return s
	}
	head := text.Head(s, maxShownText)
	return fmt.Sprintf("%s [%d bytes are left out here; the record has them]", head, len(s)-len(head))
}

// what returns what runs, or would have.
func what(l *audit.Line) string {
	folder := ""
	if l.Cwd != "" {
		folder = " in " + elicit.ShowCommand([]string{l.Cwd})
	}
	switch {
	case len(l.Command) > 0:
		return elicit.ShowCommand(l.Command) + folder + ranWords(l.Basis)
	case l.Kind == "command":
		return "a long command with the sum " + l.Sum + folder
	case l.Kind == "patch":
		return "a patch"
	}
	return "the tool " + l.Tool
}

func ranWords(b *protocol.Basis) string {
	if b == nil || b.Ran == "" {
		return ""
	}
	return map[string]string{"outside": ", without a sandbox", "sandbox": ", in the sandbox", "read-only": ", in the read-only sandbox"}[b.Ran]
}

func basisWords(b *protocol.Basis) string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf(": approval policy %s, sandbox mode %s", b.Policy, b.Sandbox)
}

// asked returns what a question was about.
func asked(l *audit.Line) string {
	m, err := protocol.ParseEvent([]byte(l.Question))
	if err != nil {
		return "a question that cannot be read"
	}
	switch m := m.(type) {
	case protocol.ExecApprovalRequest:
		words := elicit.ShowCommand(m.Command) + " in " + elicit.ShowCommand([]string{m.Cwd})
		if m.Reason != "" {
			words += ", because: " + m.Reason
		}
		return words
	case protocol.PatchApprovalRequest:
		return "a patch of " + elicit.ShowCommand(slices.Sorted(maps.Keys(m.Changes)))
	}
	return string(l.Question)
}

// askedDiff returns the patch that a question was about.
func askedDiff(l *audit.Line) string {
	m, _ := protocol.ParseEvent([]byte(l.Question)) // asked reports an error
	p, ok := m.(protocol.PatchApprovalRequest)
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(p.Changes)) {
		fmt.Fprintf(&b, "=== %s\n%s\n", elicit.OneLine(path, 0), p.Changes[path].Diff())
	}
	return b.String()
}

// decided returns who decided, how, and when.
func decided(l *audit.Line) string {
	by := l.By
	if l.Approver != "" {
		by += " " + l.Approver
	}
	var words strings.Builder
	words.WriteString(fmt.Sprintf("%s by %s", strings.ReplaceAll(l.Decision, "_", " "), by))
	if l.Waited > 0 {
		words.WriteString(" after " + milliseconds(l.Waited))
	}
	for _, more := range []struct{ name, text string }{
		{"the rule", l.RuleWords}, {"reason", string(l.Reason)}, {"feedback", l.Feedback}, {"detail", l.Detail},
		{"a program answered", l.Automatic}, {"with the answer to", l.With},
	} {
		if more.text != "" {
			words.WriteString("; " + more.name + ": " + more.text)
		}
	}
	return words.String()
}

// bounded returns the rows of the last entries that have room, and how many entries are left out.
func bounded(entries []*audit.Entry, omitted int) (shown [][]row, left int) {
	size := 0
	for i, e := range slices.Backward(entries) {
		all := rows(e)
		for _, r := range all {
			size += len(r.text)
		}
		if size > maxShownPage {
			omitted += i + 1
			break
		}
		shown = append(shown, all)
	}
	slices.Reverse(shown)
	return shown, omitted
}

func leftOut(n int) string {
	return fmt.Sprintf("%d older entries are left out; a later --since shows fewer, and --thread those of one thread", n)
}

func writeTimeline(out io.Writer, entries []*audit.Entry, omitted int) error {
	shown, omitted := bounded(entries, omitted)
	var b strings.Builder
	if omitted > 0 {
		b.WriteString(leftOut(omitted) + "\n\n")
	}
	for _, entry := range shown {
		for _, r := range entry {
			indent := "  "
			if r.kind == rowTime {
				indent = ""
			}
			if r.kind == rowDiff {
				indent = "    "
			}
			for line := range strings.Lines(r.text) {
				b.WriteString(indent + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
		b.WriteString("\n")
	}
	if len(shown) == 0 {
		b.WriteString("there are no records of that\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// pageHead begins a page that runs nothing and loads nothing.
const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'">
<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">
<title>Record of approvals</title>
<style>
body{font:14px/1.4 ui-monospace,monospace;margin:2em auto;max-width:70em;padding:0 1em;background:#fff;color:#111}
section{border-top:1px solid #bbb;padding:.5em 0}p,pre{margin:.2em 0;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;direction:ltr}
.time{color:#555}.no{color:#a00}.diff{border-left:3px solid #bbb;padding-left:1em;max-height:30em;overflow:auto}
</style></head><body><h1>Record of approvals</h1>
`

func writePage(out io.Writer, entries []*audit.Entry, omitted int) error {
	shown, omitted := bounded(entries, omitted)
	var b strings.Builder
	b.WriteString(pageHead)
	if omitted > 0 {
		fmt.Fprintf(&b, "<p class=\"no\">%s</p>\n", html.EscapeString(leftOut(omitted)))
	}
	for _, entry := range shown {
		b.WriteString("<section>\n")
		for _, r := range entry {
			tag := "p"
			if r.kind == rowDiff {
				tag = "pre"
			}
			fmt.Fprintf(&b, "<%s class=\"%s\">%s</%[1]s>\n", tag, r.kind, html.EscapeString(r.text))
		}
		b.WriteString("</section>\n")
	}
	fmt.Fprintf(&b, "<p>%d entries</p></body></html>\n", len(shown))
	_, err := io.WriteString(out, b.String())
	return err
}
