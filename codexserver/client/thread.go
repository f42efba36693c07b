package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcpcall"
	jsonv2 "github.com/go-json-experiment/json"
)

// Wait waits until one of the conversations has no running turn, and returns the results of all
// of them; those that continue are running or waiting. Without an id it waits for the turns whose
// results have not been returned: those of [Client.Background], and of [Client.Run] that the end of a
// context interrupted. Without such turns it returns at once.
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
		if err := c.Call(ctx, "codex-wait", arguments, &rows); err != nil {
			return nil, err
		}
		results, ended := make([]Result, 0, len(rows.Threads)), len(rows.Threads) == 0
		for i := range rows.Threads {
			results = append(results, Result{TurnResult: rows.Threads[i], Answer: rows.Threads[i].Content})
			ended = ended || rows.Threads[i].Status.Ended()
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

// Interrupt interrupts the turn of a conversation, if one runs.
func (c *Client) Interrupt(ctx context.Context, thread string) error {
	return c.Call(ctx, "codex-interrupt", map[string]any{"threadId": thread}, nil)
}

// calm are the tools that may be called twice.
var calm = []string{"codex-interrupt", "codex-list", "codex-models", "codex-show", "codex-wait"}

// Call calls any tool of the server, such as codex-list, codex-models, and codex-show for what results leave out. It
// decodes the structured content of the result into a pointer, or nothing into nil. A failure that the server reports
// is a [*ToolError]. If the connection ends, a call that begins no turn is repeated. For others the error is a
// [*LostError].
func (c *Client) Call(ctx context.Context, tool string, arguments map[string]any, into any) error {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	answer, err := c.await(ctx, &turn{tool: tool, calm: slices.Contains(calm, tool)}, arguments, &mcpcall.Call{})
	if err != nil {
		return err
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
