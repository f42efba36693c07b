package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcpcall"
	jsonv2 "github.com/go-json-experiment/json"
)

// Thread is a conversation, as [Client.List] returns it.
type Thread struct {
	// ID continues it, see [Task].Thread.
	ID string
	// Preview is the title, or the beginning of the first message.
	Preview string
	// Cwd is its folder, and Began when it began; zero if that is not known.
	Cwd   string
	Began time.Time
	// Status and Doing describe the last turn of this client: what it does, or how it ended.
	// They are "" if this client ran none.
	Status protocol.TurnStatus
	Doing  string
}

// Filter chooses conversations. The zero value chooses all.
type Filter struct {
	// Search finds text in the preview, Cwd the conversations of one folder.
	Search, Cwd string
}

// List returns the conversations, the newest first. After an error it ends.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[Thread, error] {
	return func(yield func(Thread, error) bool) {
		ctx, leave, err := c.enter(ctx)
		if err != nil {
			yield(Thread{}, err)
			return
		}
		defer leave()
		for cursor := ""; ; {
			arguments := map[string]any{"pageSize": 50}
			set(arguments, "search", f.Search)
			set(arguments, "cwd", f.Cwd)
			set(arguments, "cursor", cursor)
			var page struct {
				Conversations []struct {
					ThreadID  string              `json:"threadId"`
					Preview   string              `json:"preview"`
					Cwd       string              `json:"cwd"`
					Timestamp string              `json:"timestamp"`
					Status    protocol.TurnStatus `json:"status"`
					Doing     string              `json:"doing"`
				} `json:"conversations"`
				NextCursor string `json:"nextCursor"`
			}
			if err := c.read(ctx, "codex-list", arguments, &page); err != nil {
				yield(Thread{}, err)
				return
			}
			for _, row := range page.Conversations {
				began, _ := time.Parse(time.RFC3339, row.Timestamp) // zero if it is not known
				if !yield(Thread{row.ThreadID, row.Preview, row.Cwd, began, row.Status, row.Doing}, nil) {
					return
				}
			}
			if page.NextCursor == "" || page.NextCursor == cursor {
				return
			}
			cursor = page.NextCursor
		}
	}
}

// Wait waits until one of the conversations has no running turn, and returns the results of all
// of them; those that continue are running or waiting. Without an id it waits for the turns of
// [Client.Background] whose results have not been returned; without such turns it returns at
// once. A turn of [Client.Run] that was interrupted is not among them.
func (c *Client) Wait(ctx context.Context, threads ...string) ([]Result, error) {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	arguments := map[string]any{}
	if len(threads) > 0 {
		arguments["threadIds"] = threads
	}
	for {
		var rows struct {
			Threads []protocol.TurnResult `json:"threads"`
		}
		if err := c.read(ctx, "codex-wait", arguments, &rows); err != nil {
			return nil, err
		}
		results, ended := make([]Result, 0, len(rows.Threads)), len(rows.Threads) == 0
		for i := range rows.Threads {
			r := Result{TurnResult: rows.Threads[i], Answer: rows.Threads[i].Content}
			if len(threads) == 0 && c.gaveUp(&r) {
				continue
			}
			results = append(results, r)
			ended = ended || r.Status.Ended()
		}
		if ended {
			return results, nil
		}
		select { // for a server that does not wait
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// gaveUp reports whether a result is that of a turn that was interrupted by the end of a context:
// its method has returned the error. The server, which only knows that no one waits for the
// answer, keeps it for Wait.
func (c *Client) gaveUp(r *Result) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, is := c.interrupted[r.ThreadID]
	if is && r.Status.Ended() {
		delete(c.interrupted, r.ThreadID)
	}
	return is
}

// Interrupt interrupts the turn of a conversation, if one runs.
func (c *Client) Interrupt(ctx context.Context, thread string) error {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return c.read(ctx, "codex-interrupt", map[string]any{"threadId": thread}, nil)
}

// read calls a tool that may be called twice, and decodes the structured content into a
// pointer, or into nothing.
func (c *Client) read(ctx context.Context, tool string, arguments map[string]any, into any) error {
	var answer json.RawMessage
	for n := 1; ; n++ {
		var err error
		answer, err = c.call(ctx, tool, arguments)
		if unknown, _ := lost(err); unknown && n < tries && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	r, texts, err := toolResult(answer)
	switch {
	case err != nil:
		return err
	case r.IsError != nil && *r.IsError:
		return &ToolError{tool, cmp.Or(strings.Join(texts, "\n"), "failed")}
	case into == nil:
		return nil
	}
	if err := jsonv2.Unmarshal(r.StructuredContent, into); err != nil {
		return fmt.Errorf("%s: %w: structuredContent: %s", tool, ErrAnswer, mcpcall.Brief(err.Error()))
	}
	return nil
}

// Call calls any tool of the server and returns its result as JSON, such as codex-show for what results leave
// out, and codex-models. If the connection ends, it is not repeated: the error is a [*LostError].
func (c *Client) Call(ctx context.Context, tool string, arguments map[string]any) (json.RawMessage, error) {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	answer, err := c.call(ctx, tool, arguments)
	if unknown, sent := lost(err); unknown && sent && !errors.Is(context.Cause(ctx), ErrClosed) {
		err = &LostError{Err: err}
	}
	return answer, err
}

// call is Call for a method that has begun.
func (c *Client) call(ctx context.Context, tool string, arguments map[string]any) (json.RawMessage, error) {
	if arguments == nil {
		arguments = map[string]any{}
	}
	raw, err := encode(arguments)
	if err != nil {
		return nil, err
	}
	s, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return s.Call(ctx, &mcpcall.Call{Tool: tool, Arguments: raw})
}
