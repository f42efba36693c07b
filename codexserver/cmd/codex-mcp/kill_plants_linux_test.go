package main

import (
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
)

// left is what a task has left: the text of its conversation's file, of the record of
// decisions, and of the file to which all commands have written.
type left struct{ rollout, record, ran string }

// edit replaces the lines that have all words. It returns the text as it was if there is none.
func edit(text, with string, words ...string) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			line = strings.ReplaceAll(with, "LINE", line)
		}
		all.WriteString(line)
	}
	return all.String()
}

// plantsOf are the faults that can be planted about a command that ran once, about a patch and about a turn, by
// what the checker must say. A fault that changes nothing does not fit.
var plantsOf = map[history.Kind]func(l *left, command, patch string){
	history.Twice: func(l *left, command, _ string) { l.ran = edit(l.ran, "LINELINE", command+"\n") },
	history.Missing: func(l *left, command, _ string) {
		if answered := edit(l.rollout, "", `"function_call_output"`, `"call_id":"`+command+`"`, `exit_code\\":0`); answered != l.rollout {
			l.ran = edit(l.ran, "", command+"\n")
		}
	},
	history.Unrecorded: func(l *left, command, _ string) { l.record = edit(l.record, "", `"event":"begins"`, `"`+command+`"`) },
	history.Unanswered: func(l *left, command, _ string) {
		l.rollout = edit(l.rollout, "", `"function_call_output"`, `"`+command+`"`)
	},
	history.Unapproved:  func(l *left, command, _ string) { l.record = edit(l.record, "", `"`+command+`"`) },
	history.AfterDenial: func(l *left, command, _ string) { l.record = strings.Join(deny(l.record, command), "") },
	history.HalfPatch: func(l *left, _, patch string) {
		if lines := strings.SplitAfter(l.rollout, "\n"); patch != "" {
			for i, line := range lines {
				if strings.Contains(line, `"function_call"`) && strings.Contains(line, `"`+patch+`"`) {
					lines[i] = strings.Replace(line, "+line", "+another line", 1)
				}
			}
			l.rollout = strings.Join(lines, "")
		}
	},
	history.NoEnd:   func(l *left, _, _ string) { l.rollout = edit(l.rollout, "", `"task_complete"`) },
	history.TwoEnds: func(l *left, _, _ string) { l.rollout = edit(l.rollout, "LINELINE", `"task_complete"`) },
}

// deny makes denials of the approvals of a call.
func deny(record, call string) (lines []string) {
	for line := range strings.Lines(record) {
		if strings.Contains(line, `"`+call+`"`) {
			line = strings.ReplaceAll(line, `"decision":"approved"`, `"decision":"denied"`)
		}
		lines = append(lines, line)
	}
	return lines
}

// plant plants a fault in what a task has left, and checks that the history that is read from it
// has the fault. It returns false if the fault does not fit the task.
func (k *killer) plant(whole *history.History, task history.Task, l left) bool {
	k.t.Helper()
	command, patch := "", ""
	for id, c := range whole.Calls {
		switch {
		case id.Thread != task.Thread:
		case c.Patch && len(c.Files) > 0:
			// Otherwise it is no fault: nothing was applied, or the client knows.
			if c.Files[0].State == history.After && !c.Cut {
				patch = id.Call
			}
		case c.Effects == 1:
			command = id.Call
		}
	}
	if command == "" {
		return false
	}
	kinds := slices.Sorted(maps.Keys(plantsOf))
	kind := kinds[mathrand.N(len(kinds))]
	was := l
	if plantsOf[kind](&l, command, patch); l == was {
		return false
	}
	path := filepath.Join(k.t.TempDir(), "rollout")
	h := &history.History{Tasks: []history.Task{task}, Free: whole.Free}
	err := os.WriteFile(path, []byte(l.rollout), 0o600)
	if err == nil {
		err = h.ReadRollout(path)
	}
	if err == nil {
		if err = os.WriteFile(path, []byte(l.record), 0o600); err == nil {
			err = h.ReadRecord(path)
		}
	}
	if err != nil {
		k.t.Fatal(err)
	}
	k.effects(h, l.ran)
	found := h.Check()
	if !slices.ContainsFunc(found, func(f history.Fault) bool { return f.Kind == kind }) {
		k.t.Errorf("%q is planted about %s or %s of task %s; found %v", kind, command, patch, task.Name, found)
	}
	return true
}
