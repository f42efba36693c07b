package codexserver

import (
	"io"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// record appends every question with its decision to a file, a JSON object a
// line. Without a writer it does nothing.
type record struct {
	mu sync.Mutex
	w  io.Writer
}

type recordLine struct {
	Time     time.Time       `json:"time"`
	Thread   string          `json:"threadId"`
	Question jsontext.Value  `json:"question"`
	Decision elicit.Decision `json:"decision"`
	By       string          `json:"by"` // rule, client or desk
	Reason   elicit.Reason   `json:"reason,omitzero"`
	Feedback string          `json:"feedback,omitzero"`
	Detail   string          `json:"detail,omitzero"`
}

func (r *record) add(a *ApprovalRequest, out elicit.Outcome, by string) error {
	if r.w == nil {
		return nil
	}
	question, err := protocol.AppendEvent(nil, a.Request)
	if err != nil {
		return err
	}
	line, err := json.Marshal(recordLine{
		Time: time.Now().UTC(), Thread: a.Thread.ID, Question: question,
		Decision: out.Decision, By: by, Reason: out.Reason, Feedback: out.Feedback, Detail: out.Detail,
	}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.w.Write(append(line, '\n'))
	return err
}
