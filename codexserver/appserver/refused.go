package appserver

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The app-server does not report the commands and patches that Codex rejects by its own
// policy. Only the rollout has them: a call of the model, and an output that says so.

// Limits of reading a rollout after a turn.
const (
	maxRolloutPart = 64 << 20               // bytes of one turn
	rolloutLimit   = 200 * time.Millisecond // Codex writes the end of the turn late, or never
	rolloutPause   = 10 * time.Millisecond
)

// rolloutMark is the end of a rollout before a turn.
type rolloutMark struct {
	path string
	size int64
}

func markRollout(path string) rolloutMark {
	m := rolloutMark{path: path}
	if info, err := os.Stat(path); err == nil {
		m.size = info.Size()
	}
	return m
}

// refusals returns what Codex has rejected since the mark, among calls without an item. Cwd
// is the folder of commands that name none.
func (m rolloutMark) refusals(ctx context.Context, cwd string, item func(id string) bool) []protocol.BackgroundEvent {
	if m.path == "" {
		return nil
	}
	part, err := m.await(ctx, func(p rolloutPart) bool { return len(p.ends) > 0 })
	if err != nil {
		return nil
	}
	var all []protocol.BackgroundEvent
	for _, c := range part.calls {
		if reason, ok := rejection(c.output); ok && !item(c.id) {
			all = append(all, refusal(c.refused(cwd, reason)))
		}
	}
	return all
}

// rolloutCall is a call of the model, with the output that the model got.
type rolloutCall struct {
	id, name, arguments, output string
}

// rolloutLine is a line of a rollout, as far as it is read.
type rolloutLine struct {
	Type    protocol.RolloutType `json:"type"`
	Payload struct {
		Type      string         `json:"type"`
		CallID    string         `json:"call_id"`
		Name      string         `json:"name"`
		Arguments string         `json:"arguments"`
		Input     jsontext.Value `json:"input"`
		Output    jsontext.Value `json:"output"`
		TurnID    string         `json:"turn_id"`
		Answer    *string        `json:"last_agent_message"`
		// The policies of a turn.
		Cwd      string         `json:"cwd"`
		Model    string         `json:"model"`
		Policy   jsontext.Value `json:"approval_policy"`
		Reviewer string         `json:"approvals_reviewer"`
		Sandbox  struct {
			Type     string         `json:"type"`
			Roots    []string       `json:"writable_roots"`
			Network  jsontext.Value `json:"network_access"`
			NoTmp    bool           `json:"exclude_slash_tmp"`
			NoTmpdir bool           `json:"exclude_tmpdir_env_var"`
		} `json:"sandbox_policy"`
	} `json:"payload"`
}

// end returns the end of a turn, or nil.
func (l *rolloutLine) end() *rolloutEnd {
	completed := l.Payload.Type == "task_complete"
	if l.Type != protocol.RolloutEventMsg || !completed && l.Payload.Type != "turn_aborted" {
		return nil
	}
	return &rolloutEnd{l.Payload.TurnID, completed, l.Payload.Answer}
}

// call returns a call of the model, or nil.
func (l *rolloutLine) call() *rolloutCall {
	p := &l.Payload
	if p.Type != "function_call" && p.Type != "custom_tool_call" {
		return nil
	}
	var input string
	_ = json.Unmarshal(p.Input, &input, jsontext.AllowInvalidUTF8(true)) // "" if it is not text
	return &rolloutCall{id: p.CallID, name: p.Name, arguments: p.Arguments + input}
}

// rolloutPart is what a rollout has since a mark.
type rolloutPart struct {
	calls []*rolloutCall
	ends  []rolloutEnd
}

// rolloutEnd is the end of a turn.
type rolloutEnd struct {
	turn      string
	completed bool
	answer    *string
}

// completed returns the end of a turn, if the rollout says that it completed, or nil.
func (m rolloutMark) completed(ctx context.Context, turn string) (end *rolloutEnd) {
	_, _ = m.await(ctx, func(p rolloutPart) bool { // without a rollout there is no end
		i := slices.IndexFunc(p.ends, func(e rolloutEnd) bool { return e.completed && e.turn == turn })
		if i >= 0 {
			end = &p.ends[i]
		}
		return end != nil
	})
	return end
}

// await reads until there is enough, for [rolloutLimit] at most: Codex may write late. It returns
// what it read last.
func (m rolloutMark) await(ctx context.Context, enough func(rolloutPart) bool) (rolloutPart, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), rolloutLimit)
	defer stop()
	for {
		part, err := m.read()
		if err != nil || enough(part) {
			return part, err
		}
		select {
		case <-time.After(rolloutPause):
		case <-ctx.Done():
			return part, nil
		}
	}
}

// lines calls add with each line since the mark.
func (m rolloutMark) lines(add func(line []byte)) error {
	f, err := safefile.Open(m.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(io.Discard, f, m.size); err != nil {
		return err
	}
	for in := bufio.NewReader(io.LimitReader(f, maxRolloutPart)); ; {
		line, err := in.ReadBytes('\n')
		if err != nil { // the last line may not be whole
			return nil
		}
		add(line)
	}
}

// read returns what the rollout has since the mark.
func (m rolloutMark) read() (part rolloutPart, err error) {
	byID := map[string]*rolloutCall{}
	err = m.lines(func(line []byte) {
		if !bytes.Contains(line, []byte(`"function_call`)) && !bytes.Contains(line, []byte(`"custom_tool_call`)) &&
			!bytes.Contains(line, []byte(`"task_complete"`)) && !bytes.Contains(line, []byte(`"turn_aborted"`)) {
			return
		}
		var l rolloutLine
		if json.Unmarshal(line, &l, jsontext.AllowInvalidUTF8(true)) != nil {
			return
		}
		p := &l.Payload
		switch end, c := l.end(), l.call(); {
		case end != nil:
			part.ends = append(part.ends, *end)
		case l.Type == protocol.RolloutEventMsg:
		case c != nil:
			byID[c.id] = c
			part.calls = append(part.calls, c)
		case byID[p.CallID] != nil:
			_ = json.Unmarshal(p.Output, &byID[p.CallID].output) // "" if it is not text
		}
	})
	return part, err
}

// rejection returns the reason in an output if Codex rejected the call by its policy. What
// the output of a command begins with is Codex's, so a command cannot imitate it.
func rejection(output string) (reason string, ok bool) {
	switch {
	case strings.HasPrefix(output, "exec_command failed"):
		_, quoted, found := strings.Cut(output, "Rejected(")
		end := strings.LastIndex(quoted, `")`)
		if !found || end < 0 {
			return "", false
		}
		// Codex quotes the reason twice, as Rust shows errors.
		reason = strings.NewReplacer(`\\\"`, `"`, `\"`, `"`).Replace(quoted[:end])
		reason = strings.Trim(reason, `"\`)
		return reason, reason != "rejected by user"
	case strings.HasPrefix(output, "approval policy is ") && strings.Contains(output, "; reject command"),
		strings.HasPrefix(output, "patch rejected: "):
		return output, true
	}
	return "", false
}

// refused describes the call.
func (c *rolloutCall) refused(cwd, reason string) protocol.Refused {
	var a struct {
		Cmd     string         `json:"cmd"`
		Command jsontext.Value `json:"command"`
		Workdir string         `json:"workdir"`
		Input   string         `json:"input"`
	}
	r := protocol.Refused{Tool: c.name, Reason: reason, Cwd: cwd}
	text := c.arguments
	if json.Unmarshal([]byte(c.arguments), &a) == nil {
		if a.Workdir != "" {
			r.Cwd = a.Workdir
		}
		line := a.Cmd
		switch a.Command.Kind() {
		case '"':
			_ = json.Unmarshal(a.Command, &line)
		case '[':
			_ = json.Unmarshal(a.Command, &r.Command)
		}
		if line != "" {
			r.Command = []string{"bash", "-lc", line}
		}
		text = a.Input + line + strings.Join(r.Command, "\n")
	}
	if strings.HasPrefix(reason, "patch rejected") {
		for line := range strings.Lines(text) {
			for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: "} {
				if path, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
					if r.Changes == nil {
						r.Changes = map[string]protocol.FileChange{}
					}
					r.Changes[path] = protocol.FileChange{}
				}
			}
		}
		if r.Changes != nil {
			r.Command = nil
		}
	}
	return r
}

// refusal is the event about a refusal.
func refusal(r protocol.Refused) protocol.BackgroundEvent {
	what := "call the tool " + r.Tool
	switch {
	case r.Command != nil:
		what = "run the command"
	case r.Changes != nil:
		what = "apply the patch"
	}
	return protocol.BackgroundEvent{Message: "Codex did not " + what + ": " + r.Reason, Refused: &r}
}

// declined returns the refusal of an item that was declined without a question.
func declined(it apptypes.Item) protocol.BackgroundEvent {
	r := protocol.Refused{Reason: "declined by the policy of Codex", Cwd: it.Cwd}
	if it.AggregatedOutput != "" {
		r.Reason = it.AggregatedOutput
	}
	if it.Type == apptypes.ThreadItemFileChange {
		r.Changes = fileChanges(it.Changes)
	} else {
		r.Command = splitCommand(it.Command)
	}
	return refusal(r)
}
