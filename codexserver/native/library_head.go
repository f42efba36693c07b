package native

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

// A list shows the beginning of each rollout.
const (
	headLines   = 64      // so many lines are read
	headMaxLine = 4 << 20 // longer lines are skipped
)

// head is the beginning of a rollout.
type head struct {
	id, timestamp, cwd, origin string
	// preview is the user's first message.
	preview string
	said    bool // preview is set
}

// readHead reads a rollout up to the user's first message.
func readHead(path string) (*head, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := &head{}
	lines := bufio.NewReader(f)
	for n := 0; n < headLines && !(h.said && h.id != ""); n++ {
		line, err := shortLine(lines)
		if err != nil {
			break
		}
		var l protocol.RolloutLine
		if json.Unmarshal(line, &l) == nil {
			h.add(l)
		}
	}
	switch {
	case h.id == "":
		return nil, errors.New("there is no session_meta line")
	case !h.said:
		return nil, errors.New("the user has said nothing yet")
	}
	return h, nil
}

// shortLine reads a line. It returns nil for a line that is too long, such as a message
// with images.
func shortLine(r *bufio.Reader) (line []byte, err error) {
	for long := false; ; {
		piece, err := r.ReadSlice('\n')
		if long = long || len(line)+len(piece) > headMaxLine; long {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				err = nil
			}
			return line, err
		}
	}
}

func (h *head) add(l protocol.RolloutLine) {
	switch l.Type {
	case protocol.RolloutSessionMeta:
		var meta protocol.SessionMeta
		if json.Unmarshal(l.Payload, &meta) == nil && h.id == "" {
			h.id, h.timestamp, h.cwd, h.origin = meta.ID, meta.Timestamp, meta.Cwd, meta.Originator
		}
	case protocol.RolloutResponseItem:
		var m struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content []struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content"`
		}
		if json.Unmarshal(l.Payload, &m) != nil || m.Type != "message" || m.Role != "user" {
			return
		}
		for _, c := range m.Content {
			if c.Type == "input_text" && h.say(c.Text) {
				return
			}
		}
	case protocol.RolloutEventMsg:
		var m struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Kind    string `json:"kind"`
		}
		if json.Unmarshal(l.Payload, &m) == nil && m.Type == "user_message" && (m.Kind == "" || m.Kind == "plain") {
			h.say(m.Message)
		}
	}
}

// say sets the preview if text is the user's first message. It returns false for context
// that an engine has added.
func (h *head) say(text string) bool {
	trimmed := strings.TrimSpace(text)
	for _, tag := range []string{"user_instructions>", "environment_context>"} {
		if strings.HasPrefix(trimmed, "<"+tag) && strings.HasSuffix(trimmed, "</"+tag) {
			return false
		}
	}
	if h.said {
		return true
	}
	// Editors put their own context before the request, under this heading.
	if _, request, ok := strings.Cut(text, "## My request for Codex:"); ok {
		text = strings.TrimSpace(request)
	}
	h.preview, h.said = text, true
	return true
}
