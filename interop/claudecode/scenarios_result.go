package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

// The structured content of a result says what the turn did. The model must see it, also
// in an error: else it has only what the turn says of itself.

// outcome is the part of a turn's result that the scenarios check.
type outcome struct {
	Status   string
	Usage    usage
	Changes  []change
	Commands []command
	Refused  []refusal
}

type usage struct{ Turn struct{ Input, Output int } }

type change struct {
	Path, Kind     string
	Added, Removed int
}

type command struct {
	Command  string
	ExitCode int
}

type refusal struct{ Kind, What, Why, By, Reason string }

// deed is a turn that changes a file, runs a command that fails, and is refused a
// push.
func deed() []providertest.Turn {
	const patch = "*** Begin Patch\n*** Add File: made\n+one\n+two\n*** End Patch\n"
	return []providertest.Turn{
		providertest.Call(providertest.Shell("call_patch", "apply_patch", patch)),
		providertest.Call(providertest.Shell("call_ls", "ls", "missing")),
		providertest.Call(providertest.Shell("call_push", "git", "push", "origin")),
		providertest.Say("Codex ends: all is done"),
	}
}

// done is what the model is to see of the deed.
func done() outcome {
	o := outcome{
		Status:   "completed",
		Changes:  []change{{Path: "made", Kind: "add", Added: 2}},
		Commands: []command{{"ls missing", 2}},
		Refused:  []refusal{{"command", "git push origin", "declined", "client", "declined"}},
	}
	o.Usage.Turn.Input, o.Usage.Turn.Output = 40, 20 // of four responses
	return o
}

// failed is what it is to see where the turn's last response is missing.
func failed() outcome {
	o := done()
	o.Status = "failed"
	o.Usage.Turn.Input, o.Usage.Turn.Output = 30, 15
	return o
}

// aborted is what it is to see where the user cancels the push.
func aborted() outcome {
	o := failed()
	o.Status, o.Usage = "aborted", usage{} // any: the engine may not have counted the last response
	o.Refused[0].Why, o.Refused[0].Reason = "the client cancelled the approval request", "cancelled"
	return o
}

// pushes is the question that is not accepted.
const pushes = "Allow Codex to run `git push origin"

// decides accepts the patch and declines the push.
func (s *stage) decides() {
	s.accepts("Allow Codex to apply")
	s.declines(pushes)
}

// aborts accepts the patch and cancels the push.
func (s *stage) aborts() {
	s.accepts("Allow Codex to apply")
	s.sees(pushes)
	s.leaves(pushes, "Escape")
}

// knows checks what the model received in words that contain all parts. No usage
// stands for any.
func (s *stage) knows(want outcome, parts ...string) {
	told := s.hears(parts...)
	s.do(func() error {
		got, err := readOutcome(told)
		if err != nil {
			return err
		}
		if want.Usage == (usage{}) {
			if got.Usage == (usage{}) {
				return fmt.Errorf("the model received no usage: %s", told)
			}
			got.Usage = usage{}
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("the model's result (-want +got)\n%s\nin %s", d, told)
		}
		return nil
	})
	s.made("made", true)
}

// readOutcome reads the first result in a text.
func readOutcome(told string) (o outcome, err error) {
	_, members, found := strings.Cut(told, `{"threadId":`)
	if !found {
		return o, fmt.Errorf("the model received no structured content: %s", told)
	}
	err = json.NewDecoder(strings.NewReader(`{"threadId":` + members)).Decode(&o)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, told)
	}
	return o, err
}

// resultLegacy has the result of a call, in the legacy era.
func resultLegacy(s *stage) {
	deedInLegacy(s)
	s.decides()
	s.knows(done(), "Codex ends:")
	s.wire(wire.legacy, has(2, "questions", asked))
}

// resultLegacyAborted has that of a turn which the user ends: an error.
func resultLegacyAborted(s *stage) {
	deedInLegacy(s)
	s.aborts()
	s.knows(aborted(), "Turn aborted")
	s.wire(wire.legacy, has(2, "questions", asked))
}

func deedInLegacy(s *stage) {
	s.env = append(s.env, "MCP_PROTOCOL_NEGOTIATION=legacy")
	s.delegates(s.task("do the deed"))
	s.codex.Add(deed()...)
	s.start()
	s.says("delegate it")
}

func resultRounds(s *stage) {
	inRounds(s, deed()...)
	s.decides()
	s.knows(done(), "Codex ends:")
	s.wire(wire.modern, has(2, "rounds", rounds))
}

func resultRoundsAborted(s *stage) {
	inRounds(s, deed()...)
	s.aborts()
	s.knows(aborted(), "Turn aborted")
	s.wire(wire.modern, has(2, "rounds", rounds), answers(1, "cancel"))
}

func resultTask(s *stage) {
	s.codex.Add(deed()...)
	s.background(s.task("do the deed"))
	s.decides()
	s.knows(done(), "<task-notification>", "Codex ends:", "<status>completed</status>")
	s.wire(wire.modern, has(1, "tasks", created))
}

// resultTaskFailed has that of a turn whose model fails after the deed. Escape puts a
// task's question off, so that no user aborts one.
func resultTaskFailed(s *stage) {
	turns := deed()
	turns[len(turns)-1] = providertest.Turn{Status: http.StatusBadRequest, Body: `{"error":{"message":"the model is gone"}}`}
	s.codex.Add(turns...)
	s.background(s.task("do the deed"))
	s.decides()
	s.knows(failed(), "<task-notification>", "the model is gone", "<status>failed</status>")
	s.wire(wire.modern, has(1, "tasks", created))
}
