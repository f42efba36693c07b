package transcript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxRollout     = 1 << 30  // how many bytes are read
	maxRolloutLine = 16 << 20 // longer lines are skipped
)

// ReadRollout returns the log of a thread from its rollout. The log has only a transcript. Lines that cannot be decoded are skipped.
func ReadRollout(ctx context.Context, path, thread string) (*Log, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	defer f.Close()
	l := New("")
	l.transcript.size = MaxTranscript
	var last string
	found := false
	in := bufio.NewReaderSize(io.LimitReader(f, maxRollout), 64<<10)
	for line := []byte(nil); ctx.Err() == nil; {
		part, more, failed := in.ReadLine()
		if err = failed; err != nil {
			break
		}
		if len(line) <= maxRolloutLine {
			line = append(line, part...)
		}
		if more {
			continue
		}
		whole := line
		line = line[:0]
		if len(whole) > maxRolloutLine || bytes.Contains(whole[:min(len(whole), 128)],
			[]byte(`"type":"response_item","payload":{"type":"function_call_output"`)) {
			continue // most of a rollout is in lines of outputs
		}
		var r protocol.RolloutLine
		if json.Unmarshal(whole, &r, jsontext.AllowInvalidUTF8(true)) != nil {
			continue
		}
		if r.Type == protocol.RolloutSessionMeta && !found {
			var meta protocol.SessionMeta
			if json.Unmarshal(r.Payload, &meta) != nil || meta.ID != thread {
				return nil, errors.New("rollout: it belongs to another conversation")
			}
			found = true
			continue
		}
		last = l.line(r, last)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != io.EOF:
		return nil, fmt.Errorf("rollout: %w", err)
	case !found:
		return nil, errors.New("rollout: it does not name its conversation")
	}
	return l, nil
}

// completed returns the message of an item that Codex has completed, or nil for others.
func completed(raw jsontext.Value) protocol.EventMsg {
	var e struct {
		Item struct {
			Type    string `json:"type"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"item"`
	}
	if json.Unmarshal(raw, &e, jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	var text strings.Builder
	for _, c := range e.Item.Content {
		text.WriteString(c.Text)
	}
	switch e.Item.Type {
	case "UserMessage":
		return protocol.UserMessage{Message: text.String(), Kind: protocol.UserPlain}
	case "AgentMessage":
		return protocol.AgentMessage{Message: text.String()}
	}
	return nil
}

// line adds the messages and calls of a line of a rollout, of which nobody knows yet. Codex before 0.169 writes messages as
// events, later ones as items, and some versions both ways. Last is what was said last, which one that repeats it leaves.
func (l *Log) line(r protocol.RolloutLine, last string) string {
	switch r.Type {
	case protocol.RolloutEventMsg:
		m, _ := protocol.ParseEvent(r.Payload) // nil says nothing
		switch e := m.(type) {
		case protocol.RawEvent:
			if e.Type == "item_completed" {
				m = completed(jsontext.Value(e.Raw))
			}
		case protocol.TurnAborted:
			l.entry("the turn was aborted: "+Line(string(e.Reason)), "")
			return ""
		}
		heading, body := says(m)
		if said := heading + body; said != "" && said != last {
			l.entry(heading, body)
			return said
		}
	case protocol.RolloutResponseItem:
		item, _ := protocol.ParseItem(r.Payload)
		switch i := item.(type) {
		case protocol.LocalShellCallItem:
			l.entry("command: "+commandLine(i.Action.Command), "")
		case protocol.FunctionCallItem: // only a command is shown: other arguments may contain secrets
			if c := cut.Of(i.Name, i.Arguments); c.Command != nil {
				l.entry("command: "+commandLine(c.Command), "")
			} else {
				l.entry("tool: "+Line(i.Name), "")
			}
		case protocol.CustomToolCallItem:
			l.entry("tool: "+Line(i.Name), "")
		default:
			return last
		}
		return ""
	}
	return last
}
