package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// line is a line of a conversation's file, with the members of all payloads that matter.
type line struct {
	Type    string `json:"type"`
	Payload struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Output    string `json:"output"`

		Kind  string `json:"kind"`
		Turn  string `json:"turn"`
		Call  string `json:"call"`
		Files []struct {
			Path, Before, After string
		} `json:"files"`
	} `json:"payload"`
}

// ReadRollout adds the turns and calls of a conversation's file. A part of a line at the end
// is left out.
func (h *History) ReadRollout(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if h.Calls == nil {
		h.Calls = map[ID]*Call{}
	}
	if h.Turns == nil {
		h.Turns = map[string]*Turn{}
	}
	thread, key := "", ""
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			continue // the payload is of another form
		}
		p := &l.Payload
		call := func(id string) *Call {
			c := h.Calls[ID{thread, id}]
			if c == nil {
				c = &Call{ID: ID{thread, id}, Effects: -1}
				h.Calls[c.ID] = c
			}
			return c
		}
		switch l.Type {
		case "session_meta":
			if thread == "" {
				thread = p.ID
			}
		case "response_item":
			switch p.Type {
			case "function_call":
				c := call(p.CallID)
				var arguments struct{ Command []string }
				_ = json.Unmarshal([]byte(p.Arguments), &arguments) // another tool has none
				c.Command, c.Marked = arguments.Command, c.Marked || key != ""
				if len(c.Command) > 0 && c.Command[0] == "apply_patch" {
					c.Patch, c.Command = true, nil
				}
			case "function_call_output":
				c := call(p.CallID)
				c.Output = p.Output
				c.Events = append(c.Events, Answered)
			}
		case "codex_mcp":
			h.readRecord(thread, &key, p.Kind, p.Turn)
			events := map[string]Event{"call_asks": Asked, "call_approved": Approved, "call_refused": Refused, "call_begins": Begun}
			e, ok := events[p.Kind]
			if !ok {
				continue
			}
			c := call(p.Call)
			c.Events = append(c.Events, e)
			if e == Begun && len(p.Files) > 0 {
				c.Files = nil
				for _, f := range p.Files {
					c.Files = append(c.Files, File{f.Path, stateOf(f.Path, f.Before, f.After)})
				}
			}
		}
	}
	if thread == "" {
		return fmt.Errorf("%s: there is no session_meta line", path)
	}
	return lines.Err()
}

// readRecord counts a record of a turn.
func (h *History) readRecord(thread string, key *string, kind, turn string) {
	if !slices.Contains([]string{"turn_begins", "turn_continues", "turn_ends"}, kind) {
		return
	}
	t := h.Turns[turn]
	if t == nil {
		t = &Turn{Thread: thread, Key: turn}
		h.Turns[turn] = t
	}
	switch kind {
	case "turn_begins":
		*key = turn
		t.Begun++
	case "turn_continues":
		t.Continued++
	case "turn_ends":
		*key = ""
		t.Ended++
	}
}

func stateOf(path, before, after string) State {
	sum := ""
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		s := sha256.Sum256(text)
		sum = hex.EncodeToString(s[:])
	case !errors.Is(err, fs.ErrNotExist):
		return Other
	}
	switch sum {
	case after:
		return After
	case before:
		return Before
	}
	return Other
}

// ReadRecord adds the decisions of a record of approvals. Conversations must be read before.
func (h *History) ReadRecord(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		var d struct {
			Thread               string `json:"threadId"`
			Call                 string `json:"callId"`
			Event                string
			Decision, By, Reason string
		}
		if err := json.Unmarshal(line, &d); err != nil {
			return fmt.Errorf("%s: %.200q: %w", path, line, err)
		}
		if c := h.Calls[ID{d.Thread, d.Call}]; c != nil && d.Event == "decided" {
			approves := slices.Contains([]string{"approved", "approved_for_session", "approved_always"}, d.Decision)
			c.Decisions = append(c.Decisions, Decision{Approves: approves, Withdrawn: d.Reason == "interrupted", By: d.By})
		}
	}
	return nil
}
