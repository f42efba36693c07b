package history_test

import (
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
)

// good returns a history without faults: a free command, one that was approved after its
// server was killed, one that was interrupted, one that was refused, and a patch.
func good() *history.History {
	id := func(call string) history.ID { return history.ID{Thread: "t", Call: call} }
	const done = `{"output":"","metadata":{"exit_code":0}}`
	yes, no := history.Decision{Approves: true, By: "client"}, history.Decision{By: "client"}
	rule := history.Decision{Approves: true, By: "rule"}
	h := &history.History{
		Recorded: true,
		Calls:    map[history.ID]*history.Call{},
		Turns:    map[string]*history.Turn{"k": {Thread: "t", Key: "k", Begun: 2, Ended: 1}},
		Tasks:    []history.Task{{Name: "task", Thread: "t", Ended: true, Told: "it may have run, and was not run again"}},
		Free:     func(command []string) bool { return command[0] == "free" },
	}
	for _, c := range []history.Call{
		{ID: id("free"), Command: []string{"free"}, Begun: 1, Output: done, Effects: 1},
		{ID: id("rule"), Command: []string{"ls"}, Begun: 1, Output: done, Effects: 1, Decisions: []history.Decision{rule}},
		{ID: id("asked twice"), Command: []string{"rm"}, Begun: 1, Output: done, Effects: 1, Decisions: []history.Decision{yes}},
		{ID: id("cut"), Command: []string{"rm"}, Begun: 1, Cut: true, Output: "who knows", Effects: 1, Decisions: []history.Decision{yes}},
		{ID: id("refused"), Command: []string{"rm"}, Output: "the command was not run", Decisions: []history.Decision{no}},
		{ID: id("patch"), Patch: true, Begun: 1, Output: done, Effects: -1, Decisions: []history.Decision{yes},
			Files: []history.File{{Path: "/w/c", State: history.After}}},
		{ID: id("half"), Patch: true, Begun: 1, Cut: true, Output: "who knows", Effects: -1, Decisions: []history.Decision{yes},
			Files: []history.File{{Path: "/w/a", State: history.After}, {Path: "/w/b", State: history.Before}}},
	} {
		h.Calls[c.ID] = &c
	}
	return h
}

// TestPlanted plants one fault in a good history. The checker finds it.
func TestPlanted(t *testing.T) {
	if faults := good().Check(); faults != nil {
		t.Fatalf("a good history has faults: %v", faults)
	}
	of := func(h *history.History, call string) *history.Call {
		return h.Calls[history.ID{Thread: "t", Call: call}]
	}
	for name, tt := range map[string]struct {
		plant func(*history.History)
		want  history.Kind
	}{
		"a command twice":        {func(h *history.History) { of(h, "asked twice").Effects = 2 }, history.Twice},
		"a free command twice":   {func(h *history.History) { of(h, "free").Effects = 2 }, history.Twice},
		"no approval":            {func(h *history.History) { of(h, "asked twice").Decisions = nil }, history.Unapproved},
		"not free any more":      {func(h *history.History) { of(h, "free").Command[0] = "paid" }, history.Unapproved},
		"begun without approval": {func(h *history.History) { c := of(h, "cut"); c.Decisions, c.Effects = nil, 0 }, history.Unapproved},
		"ran although refused":   {func(h *history.History) { of(h, "refused").Effects = 1 }, history.AfterDenial},
		"begun although refused": {func(h *history.History) { of(h, "refused").Begun++ }, history.AfterDenial},
		"refused after it was approved": {func(h *history.History) {
			c := of(h, "cut")
			c.Decisions = append(c.Decisions, history.Decision{By: "desk"})
		}, history.AfterDenial},
		"one approval for two":           {func(h *history.History) { of(h, "cut").Begun++ }, history.OneForTwo},
		"no record before the effect":    {func(h *history.History) { of(h, "free").Begun = 0 }, history.Unrecorded},
		"a patch is half applied":        {func(h *history.History) { of(h, "half").Cut = false }, history.HalfPatch},
		"only the model knows":           {func(h *history.History) { h.Tasks[0].Told = "done" }, history.Untold},
		"a part of a file":               {func(h *history.History) { of(h, "patch").Files[0].State = history.Other }, history.HalfPatch},
		"a patch that is not there":      {func(h *history.History) { of(h, "patch").Files[0].State = history.Before }, history.Missing},
		"a command that did nothing":     {func(h *history.History) { of(h, "free").Effects = 0 }, history.Missing},
		"an effect nobody was told of":   {func(h *history.History) { of(h, "cut").Cut = false }, history.Untold},
		"a beginning nobody was told of": {func(h *history.History) { c := of(h, "cut"); c.Cut, c.Effects = false, 0 }, history.Untold},
		"a task without an end":          {func(h *history.History) { h.Tasks[0].Ended = false }, history.NoEnd},
		"a turn without an end":          {func(h *history.History) { h.Turns["k"].Ended = 0 }, history.NoEnd},
		"a turn with two ends":           {func(h *history.History) { h.Turns["k"].Ended = 2 }, history.TwoEnds},
		"a process is left":              {func(h *history.History) { h.Left = []string{"1 sleep"} }, history.LeftOver},
		"a call that nobody answered":    {func(h *history.History) { of(h, "free").Output = "" }, history.Unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			tt.plant(h)
			faults := h.Check()
			if !slices.ContainsFunc(faults, func(f history.Fault) bool { return f.Kind == tt.want }) {
				t.Errorf("found %v, want %q", faults, tt.want)
			}
		})
	}
}
