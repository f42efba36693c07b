package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	codexclient "github.com/codexmcp/codexmcp/codexserver/client"
)

const (
	// lookAgain is how often the transcript of a followed conversation is read.
	lookAgain = time.Second
	// lookBack is how many bytes of what happened before are shown, at most.
	lookBack = 4 << 10
)

// passage is a part of a transcript: whole lines. Only the server's own lines begin without a
// space.
type passage string

// errUnknown reports a conversation that the server does not know.
var errUnknown = errors.New("that server runs no turn of this conversation, and has run none")

// attach follows the turn of a conversation until it ends, or until call does, which leaves it
// alone. Meanwhile the server asks this client the turn's questions.
func (cl *client) attach(running, call context.Context, c *codexclient.Client) (result codexclient.Result, err error) {
	id := cl.task.Attach
	type ending struct {
		results []codexclient.Result
		err     error
	}
	ended := make(chan ending, 1)
	go func() {
		results, err := c.Wait(call, id)
		ended <- ending{results, err}
	}()
	halt := cl.stopping.halt
	at := int64(-1)
	for {
		if at, err = cl.show(call, c, id, at); err != nil && call.Err() == nil {
			return result, errors.Join(err, leave(c, ended))
		}
		select {
		case e := <-ended:
			if e.err != nil {
				return result, e.err
			}
			if len(e.results) != 1 || e.results[0].Status == "unknown" {
				return result, errUnknown
			}
			_, err = cl.show(call, c, id, at)
			return e.results[0], err
		case <-halt:
			halt = nil
			if err := c.Interrupt(running, id); err != nil {
				return result, errors.Join(err, leave(c, ended))
			}
		case <-time.After(lookAgain):
		}
	}
}

// leave ends the connection and waits for what was begun over it.
func leave[E any](c *codexclient.Client, ended <-chan E) error {
	err := c.Close()
	<-ended
	return err
}

// show reads the transcript from an offset on, -1 for its end, and returns the next offset.
func (cl *client) show(ctx context.Context, c *codexclient.Client, id string, at int64) (int64, error) {
	begun, middle := at >= 0, false // middle is true in the middle of an entry
	for {
		raw, err := c.Call(ctx, "codex-show", map[string]any{"threadId": id, "what": "transcript", "offset": max(at, 0)})
		if err != nil {
			return at, err
		}
		var r struct {
			StructuredContent struct {
				Content             string
				Offset, Next, Total int64
			}
			IsError bool
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			return at, fmt.Errorf("codex-show: %w", err)
		}
		page := &r.StructuredContent
		if r.IsError {
			return at, errUnknown
		}
		if !begun {
			begun = true
			if from := page.Total - lookBack; from > page.Offset {
				at, middle = from, true
				continue
			}
		}
		whole := strings.LastIndexByte(page.Content, '\n') + 1
		if whole == 0 && page.Next != 0 {
			whole = len(page.Content) // a part of a long line
		}
		text := page.Content[:whole]
		if middle {
			text, middle = afterEntry(text)
		}
		if text != "" {
			cl.inbox.put(passage(text))
		}
		at = page.Offset + int64(whole)
		if page.Next == 0 || whole == 0 {
			return at, nil
		}
	}
}

// afterEntry returns a text from its first own line of the server on. If there is none, middle is
// true.
func afterEntry(text string) (rest string, middle bool) {
	for {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return "", true
		}
		if text = text[i+1:]; text != "" && text[0] != ' ' && text[0] != '\n' {
			return text, false
		}
	}
}

// passage shows a part of the transcript.
func (cl *client) passage(text string) {
	cl.thread = cl.task.Attach
	if cl.began.IsZero() {
		cl.began = time.Now()
	}
	if cl.task.JSON {
		if line, err := json.Marshal(map[string]string{"type": "transcript", "text": text}); err == nil {
			cl.line(line)
		}
		return
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		cl.v.open("transcript")
		body := strings.TrimLeft(line, " ")
		switch indent := len(line) - len(body); {
		case indent == 0:
			cl.said = line == "user:" || line == "codex:" || line == "error:"
			cl.s.line("", dim, showOutput(line))
		case cl.said:
			cl.s.prose(line[:indent], indent, plain, showOutput(body))
		default:
			cl.s.line("", plain, showOutput(line))
		}
	}
}
