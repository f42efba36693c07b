package rollout

import (
	"bufio"
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxLine = 16 << 20 // a longer line is left out
	maxFile = 4 << 30  // the rest of a longer file is ignored
	maxHead = 64 << 20 // so much is read for the beginning

	maxItems  = 16 << 20 // more than models can read
	maxBefore = 1 << 20
	maxEvents = 8 << 20
	lineCost  = 256 // what a line takes in memory besides its text
)

// Rollout is the end of a conversation as its file records it. A file can be much larger
// than what a model can read, and than the memory.
type Rollout struct {
	Meta protocol.SessionMeta
	// Items are the newest of the history since the last compaction, and Left is how many
	// others there are: older ones and lines that are too long.
	Items []protocol.ResponseItem
	Left  int
	// Summary is the summary of the last compaction, if its line has no replacement
	// history. Items then begin after the compaction.
	Summary string
	// Before are the user's newest messages of those that are left out, or that the
	// compaction of Summary replaced.
	Before []protocol.ResponseItem
	// Events are the newest events of the conversation, and EventsLeft is how many older
	// ones there are.
	Events     []jsontext.Value
	EventsLeft int
	// Context is the context of the last turn, nil without one.
	Context *protocol.TurnContext
	// Usage is the last reported usage, nil without one.
	Usage *protocol.TokenUsageInfo
	// Skipped counts the lines that could not be read, without those that are left out.
	Skipped int
	// Turns are the last turns whose beginning the file has, oldest first.
	Turns []Turn
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
	r := &reader{}
	err := eachLine(src, func(line []byte) bool {
		if r.line(line) != nil {
			r.Skipped++
		}
		return true
	}, func() { r.items.left++ }, func() { r.Skipped++ })
	if err != nil {
		return nil, err
	}
	if !r.found {
		return nil, errors.New("there is no session_meta line")
	}
	for i := range r.Turns {
		r.Turns[i].Items = max(r.all()-r.Turns[i].from, 0)
	}
	r.Items, r.Left = r.parse(&r.items), r.items.left
	r.Before = r.parse(&r.before)
	r.EventsLeft = r.events.left
	for _, raw := range r.events.all {
		if _, err := protocol.ParseEvent(raw); err != nil {
			r.Skipped++
			continue
		}
		r.Events = append(r.Events, raw)
	}
	return &r.Rollout, nil
}

// reader reads a rollout. It keeps the lines that may be needed, and parses them at the end.
type reader struct {
	Rollout
	found  bool // Meta is set
	items  newest
	before newest
	events newest
}

// newest keeps the newest of some values, up to a size.
type newest struct {
	all  []jsontext.Value
	size int
	left int // how many were dropped
}

// add adds a value, and returns those that it drops.
func (n *newest) add(value jsontext.Value, most int) (dropped []jsontext.Value) {
	n.all = append(n.all, value)
	n.size += len(value) + lineCost
	for n.size > most && len(n.all) > 1 {
		dropped = append(dropped, n.all[0])
		n.size -= len(n.all[0]) + lineCost
		n.all[0] = nil
		n.all = n.all[1:]
		n.left++
	}
	return dropped
}

// parse parses items.
func (r *reader) parse(n *newest) (items []protocol.ResponseItem) {
	var after []protocol.ResponseItem // pictures of outputs, which follow the outputs of all calls of a response
	for i, raw := range n.all {
		item, pictures, err := readItem(raw)
		n.all[i] = nil
		if err != nil {
			r.Skipped++
			continue
		}
		if !strings.HasSuffix(item.ItemType(), "_output") {
			items, after = append(items, after...), nil
		}
		items, after = append(items, item), append(after, pictures...)
	}
	return append(items, after...)
}

// line reads a line, which is valid only during the call.
func (r *reader) line(line []byte) error {
	var l protocol.RolloutLine
	if err := json.Unmarshal(line, &l, jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true)); err != nil {
		return err
	}
	payload := jsontext.Value(l.Payload)
	switch l.Type {
	case protocol.RolloutSessionMeta:
		if !r.found {
			r.found = json.Unmarshal(payload, &r.Meta) == nil && r.Meta.ID != ""
		}
	case protocol.RolloutResponseItem:
		r.item(payload)
	case protocol.RolloutEventMsg:
		return r.event(payload)
	case protocol.RolloutTurnContext:
		var c protocol.TurnContext
		if err := json.Unmarshal(payload, &c); err != nil {
			return err
		}
		r.Context = &c
	case protocol.RolloutCompacted:
		var c protocol.Compacted
		if err := json.Unmarshal(payload, &c); err != nil {
			return err
		}
		return r.compact(&c)
	}
	return nil
}

func (r *reader) item(raw jsontext.Value) {
	for _, old := range r.items.add(raw, maxItems) {
		r.user(old)
	}
}

// user keeps a message of the user.
func (r *reader) user(raw jsontext.Value) {
	if len(raw) > maxBefore || !bytes.Contains(raw, []byte(`"user"`)) {
		return
	}
	item, err := protocol.ParseItem(stdjson.RawMessage(raw))
	if m, ok := item.(protocol.MessageItem); err == nil && ok && m.Role == "user" {
		r.before.add(raw, maxBefore)
	}
}

func (r *reader) compact(c *protocol.Compacted) error {
	for _, raw := range c.ReplacementHistory {
		if _, _, err := readItem(jsontext.Value(raw)); err != nil {
			return err
		}
	}
	if last := r.Last(); last != nil { // the items that replace the others are its
		last.from = 0
	}
	if len(c.ReplacementHistory) == 0 {
		for _, raw := range r.items.all {
			r.user(raw)
		}
		r.items, r.Summary = newest{}, c.Message
		return nil
	}
	r.items, r.before, r.Summary = newest{}, newest{}, ""
	for _, raw := range c.ReplacementHistory {
		r.item(jsontext.Value(raw))
	}
	return nil
}

// Head calls line with the lines at the beginning of the rollout at path until it returns false. It leaves out
// what is no line of a rollout.
func Head(path string, line func(protocol.RolloutLine) (more bool)) error {
	f, err := safefile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return eachLine(io.LimitReader(f, maxHead), func(text []byte) bool {
		var l protocol.RolloutLine
		return json.Unmarshal(text, &l) != nil || line(l)
	}, func() {}, func() {})
}

// whole reports whether a last line without its line end is complete: no part of an object is one.
func whole(line []byte) bool {
	v := jsontext.Value(line)
	return v.Kind() == '{' && v.IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// eachLine calls line with each complete line, which is valid only during the call, until it returns false, long
// for each line that is too long, and torn for a part of a line at the end of the file.
func eachLine(src io.Reader, line func([]byte) (more bool), long, torn func()) error {
	br := bufio.NewReaderSize(src, 64<<10)
	var buf []byte
	tooLong := false
	for {
		piece, err := br.ReadSlice('\n')
		if tooLong = tooLong || len(buf)+len(piece) > maxLine; !tooLong {
			buf = append(buf, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if whole(buf) && !tooLong {
				line(bytes.TrimSpace(buf))
			} else if len(buf) > 0 || tooLong {
				torn()
			}
			return nil
		case err != nil:
			return err
		}
		if tooLong {
			long()
		} else if text := bytes.TrimSpace(buf); len(text) > 0 && !line(text) {
			return nil
		}
		buf, tooLong = buf[:0], false
	}
}
