package rollout

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxLine = 64 << 20 // a longer line is skipped
	maxFile = 4 << 30  // the rest of a longer file is ignored
)

// Rollout is a conversation as its file records it.
type Rollout struct {
	Meta protocol.SessionMeta
	// Items are the history since the last compaction.
	Items []protocol.ResponseItem
	// Summary is the summary of the last compaction, if its line has no replacement
	// history. Items then begin after the compaction.
	Summary string
	// Before are the items that the compaction of Summary replaced.
	Before []protocol.ResponseItem
	// Events are the events of the whole conversation.
	Events []jsontext.Value
	// Context is the context of the last turn, nil without one.
	Context *protocol.TurnContext
	// Usage is the last reported usage, nil without one.
	Usage *protocol.TokenUsageInfo
	// Skipped counts the lines that could not be read.
	Skipped int
}

// Load reads the rollout at path.
func Load(path string) (*Rollout, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	defer f.Close()
	r, err := Read(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("rollout %s: %w", path, err)
	}
	return r, nil
}

// Read reads a rollout. It skips and counts the lines that cannot be read, such as a torn
// last line. It fails for a rollout without its first line.
func Read(src io.Reader) (*Rollout, error) {
	r := &Rollout{}
	found := false
	err := eachLine(src, func(line []byte) {
		var l protocol.RolloutLine
		if err := json.Unmarshal(line, &l); err != nil {
			r.Skipped++
			return
		}
		if l.Type == protocol.RolloutSessionMeta && !found {
			found = json.Unmarshal(l.Payload, &r.Meta) == nil && r.Meta.ID != ""
			return
		}
		if err := r.add(l); err != nil {
			r.Skipped++
		}
	}, func() { r.Skipped++ })
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errors.New("there is no session_meta line")
	}
	return r, nil
}

func (r *Rollout) add(l protocol.RolloutLine) error {
	switch l.Type {
	case protocol.RolloutResponseItem:
		item, err := protocol.ParseItem(l.Payload)
		if err != nil {
			return err
		}
		r.Items = append(r.Items, item)
	case protocol.RolloutEventMsg:
		m, err := protocol.ParseEvent(l.Payload)
		if err != nil {
			return err
		}
		if count, ok := m.(protocol.TokenCount); ok && count.Info != nil {
			r.Usage = count.Info
		}
		r.Events = append(r.Events, jsontext.Value(l.Payload))
	case protocol.RolloutTurnContext:
		var c protocol.TurnContext
		if err := json.Unmarshal(l.Payload, &c); err != nil {
			return err
		}
		r.Context = &c
	case protocol.RolloutCompacted:
		var c protocol.Compacted
		if err := json.Unmarshal(l.Payload, &c); err != nil {
			return err
		}
		return r.compact(c)
	}
	return nil
}

func (r *Rollout) compact(c protocol.Compacted) error {
	if len(c.ReplacementHistory) == 0 {
		r.Before = append(r.Before, r.Items...)
		r.Items, r.Summary = nil, c.Message
		return nil
	}
	items := make([]protocol.ResponseItem, 0, len(c.ReplacementHistory))
	for _, raw := range c.ReplacementHistory {
		item, err := protocol.ParseItem(raw)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	r.Items, r.Summary, r.Before = items, "", nil
	return nil
}

// eachLine calls line with each complete line, and skipped for each line that is too long
// or, at the end of the file, torn.
func eachLine(src io.Reader, line func([]byte), skipped func()) error {
	br := bufio.NewReaderSize(src, 64<<10)
	var buf []byte
	tooLong := false
	for {
		piece, err := br.ReadSlice('\n')
		if !tooLong {
			buf = append(buf, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(buf) > maxLine {
				tooLong, buf = true, nil
			}
			continue
		case errors.Is(err, io.EOF):
			if len(buf) > 0 || tooLong {
				skipped()
			}
			return nil
		case err != nil:
			return err
		}
		if tooLong {
			skipped()
		} else if text := bytes.TrimSpace(buf); len(text) > 0 {
			line(bytes.Clone(text))
		}
		buf, tooLong = buf[:0], false
	}
}
