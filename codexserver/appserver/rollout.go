package appserver

import (
	"bufio"
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxRolloutPart is how much of the end of a rollout is read, in bytes.
const maxRolloutPart = 64 << 20

// rolloutCall is a call of the model.
type rolloutCall struct {
	id, name, arguments string
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
		Role      string         `json:"role"`
		Content   jsontext.Value `json:"content"`
		// The policies of a turn.
		Cwd     string         `json:"cwd"`
		Model   string         `json:"model"`
		Policy  jsontext.Value `json:"approval_policy"`
		Sandbox struct {
			Type     protocol.SandboxMode `json:"type"`
			Roots    []string             `json:"writable_roots"`
			Network  jsontext.Value       `json:"network_access"`
			NoTmp    bool                 `json:"exclude_slash_tmp"`
			NoTmpdir bool                 `json:"exclude_tmpdir_env_var"`
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

// continues reports whether the line is the message that continues the turn before.
func (l *rolloutLine) continues() bool {
	var content []struct {
		Text string `json:"text"`
	}
	return l.Payload.Role == "user" && json.Unmarshal(l.Payload.Content, &content, jsontext.AllowInvalidUTF8(true)) == nil &&
		len(content) > 0 && strings.HasPrefix(content[0].Text, cut.Head)
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

// rolloutEnd is the end of a turn.
type rolloutEnd struct {
	turn      string
	completed bool
	answer    *string
}

// lastLines calls add with each line in the last part of a rollout.
func lastLines(path string, add func(line []byte)) error {
	f, err := safefile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.SeekTail(maxRolloutPart); err != nil {
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
