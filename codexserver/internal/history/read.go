package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// line is a line of a conversation's file, with the members of all payloads that matter.
type line struct {
	Type    string `json:"type"`
	Payload struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Cwd       string          `json:"cwd"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		CallID    string          `json:"call_id"`
		Arguments string          `json:"arguments"`
		Output    string          `json:"output"`
		Turn      string          `json:"turn_id"`
	} `json:"payload"`
}

// reading is a conversation's file that is read.
type reading struct {
	*History
	thread, cwd string
	turn        *Turn   // the last one
	said        bool    // it has a message of the user
	open        []*Call // of it and of those that it continues, without a result
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
	r := reading{History: h}
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			continue // the payload is of another form
		}
		r.line(&l)
	}
	if r.thread == "" {
		return fmt.Errorf("%s: there is no session_meta line", path)
	}
	return lines.Err()
}

func (r *reading) line(l *line) {
	p := &l.Payload
	switch l.Type + " " + p.Type {
	case "session_meta ":
		if r.thread == "" {
			r.thread, r.cwd = p.ID, p.Cwd
		}
	case "event_msg task_started":
		if r.turn == nil || r.turn.Key != p.Turn {
			r.said = false
			r.turn = &Turn{Thread: r.thread, Key: p.Turn}
			r.Turns[p.Turn] = r.turn
		}
		r.turn.Begun++
	case "event_msg task_complete", "event_msg turn_aborted", "event_msg error":
		if r.turn != nil {
			r.turn.Ended++
		}
	case "response_item message":
		r.told(p.Role, p.Content)
	case "response_item function_call":
		c := r.call(p.CallID)
		r.open = append(r.open, c)
		var arguments struct {
			Command []string
			Cmd     string // of Codex
		}
		_ = json.Unmarshal([]byte(p.Arguments), &arguments) // another tool has none
		if arguments.Cmd != "" {
			arguments.Command = []string{arguments.Cmd}
		}
		if c.Command = arguments.Command; len(c.Command) > 1 && c.Command[0] == "apply_patch" {
			c.Files = added(r.cwd, c.Command[1])
			c.Patch, c.Command = true, nil
		}
	case "response_item function_call_output":
		c := r.call(p.CallID)
		// Codex says so of a call when it loads a conversation that was cut
		if strings.HasSuffix(p.Output, "aborted by user") {
			return
		}
		c.Output = p.Output
		r.open = slices.DeleteFunc(r.open, func(other *Call) bool { return other == c })
	}
}

// call returns a call, which may be new.
func (r *reading) call(id string) *Call {
	c := r.Calls[ID{r.thread, id}]
	if c == nil {
		c = &Call{ID: ID{r.thread, id}, Effects: -1}
		r.Calls[c.ID] = c
	}
	return c
}

// told reads a message that tells the model which calls have no result. Another one of a user, at the
// beginning of a turn, continues none: what was open before is not told. Codex may have ended the turn before as
// aborted or not, and adds messages of its own, which begin with a tag.
func (r *reading) told(role string, content json.RawMessage) {
	var parts []struct{ Text string }
	if role != "user" || json.Unmarshal(content, &parts) != nil || len(parts) == 0 {
		return
	}
	text := parts[0].Text
	switch {
	case strings.HasPrefix(text, "<interrupted>\n"):
		r.said = true
		if strings.Count(text, "\nWithout a result: ") == len(r.open) {
			for _, c := range r.open {
				c.Cut, c.Output = true, text
			}
		}
	case !strings.HasPrefix(text, "<") && !r.said:
		r.said, r.open = true, nil
	}
}

// added returns the files that a patch adds.
func added(cwd, patch string) (files []File) {
	for _, part := range strings.Split(patch, "*** Add File: ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		var after strings.Builder
		for line := range strings.Lines(text) {
			if line, ok := strings.CutPrefix(line, "+"); ok {
				after.WriteString(line)
			}
		}
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, name)
		}
		files = append(files, File{path, stateOf(path, after.String())})
	}
	return files
}

// stateOf returns the state of a file that was not there before.
func stateOf(path, after string) State {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Before
	case err == nil && string(text) == after:
		return After
	}
	return Other
}

// ReadRecord adds the decisions of a record of approvals, and what began. Conversations must be read before.
func (h *History) ReadRecord(path string) error {
	h.Recorded = true
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
		switch c := h.Calls[ID{d.Thread, d.Call}]; {
		case c == nil:
		case d.Event == "begins":
			c.Begun++
		case d.Event == "decided":
			c.Decisions = append(c.Decisions,
				Decision{Approves: approves(d.Decision), Withdrawn: d.Reason == "interrupted", By: d.By})
		}
	}
	return nil
}
