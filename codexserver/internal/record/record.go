package record

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Record appends every question with its decision, and what ran, to a writer, one JSON object a
// line. It is safe for concurrent use. A nil Record does nothing.
type Record struct {
	mu     sync.Mutex
	w      io.Writer
	server string // the beginning of all ids
	last   int    // the number of the last id
	ends   bool   // another server ends what this one leaves, and finds it by the id
}

// To returns a record that writes to w, or nil if w is nil.
func To(w io.Writer) *Record {
	if w == nil {
		return nil
	}
	r := &Record{w: w, server: rand.Text()[:12]}
	if l, is := w.(*Log); is {
		l.server, r.ends = r.server, true
	}
	return r
}

// Add appends a line with the time. A decision gets an id, which it returns. Strict refuses text that is not
// UTF-8, which would not be in the record as it is.
func (r *Record) Add(l Line, strict bool) (id string, err error) {
	if r == nil {
		return "", nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Event == Decided {
		r.last++
		l.DecisionID = fmt.Sprintf("%s-%d", r.server, r.last)
	} else if r.ends && l.Event != Overruled {
		l.Server = r.server
	}
	l.Time = time.Now().UTC()
	line, err := json.Marshal(&l, jsontext.AllowInvalidUTF8(!strict))
	if err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	if err != nil {
		return "", err
	}
	return l.DecisionID, nil
}

// Automatic returns what clients answered by themselves, from the lines of a [Record]: the newest
// of each kind, with its time, at most n of them, as lines for a person.
func Automatic(lines []byte, n int) (found []string) {
	seen := map[string]bool{}
	all := bytes.Split(lines, []byte("\n"))
	for i := len(all) - 1; i >= 0 && len(found) < n; i-- {
		var r Line
		if json.Unmarshal(all[i], &r, jsontext.AllowInvalidUTF8(true)) != nil || r.Automatic == "" {
			continue
		}
		// answers of one kind differ in numbers
		kind := strings.Join(strings.FieldsFunc(r.Automatic, unicode.IsDigit), "")
		if !seen[kind] {
			seen[kind] = true
			found = append(found, plain.OneLine(fmt.Sprintf("%s: %s (%s, by %s)", r.Time.Format(time.DateTime),
				r.Automatic, r.Decision, r.By), 500))
		}
	}
	return found
}

// Stamp returns a line of a [Record] that another process wrote, without its end, with the time and
// the principal of the caller, who does not trust that process. The error says what is no such
// line.
func Stamp(line []byte, now time.Time, principal string) ([]byte, error) {
	r, err := Parse(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a line of the record: %w", err)
	case !slices.Contains([]Event{Decided, Begins, Ends, Overruled}, r.Event):
		return nil, errors.New("not a line of the record: no event")
	case (r.Event == Decided) != (r.Decision != "" && r.By != ""):
		return nil, errors.New("not a line of the record: no decision, or one of another event")
	}
	if r.DecisionID != "" { // those of one user must not be those of another
		r.DecisionID = principal + "/" + r.DecisionID
	}
	r.Time, r.Principal, r.Server = now.UTC(), principal, "" // here no server ends what another one left
	return json.Marshal(&r, jsontext.AllowInvalidUTF8(true))
}
