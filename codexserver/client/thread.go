package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	jsonv2 "github.com/go-json-experiment/json"
)

// calm are the tools that may be called twice.
var calm = []string{"codex-interrupt", "codex-list", "codex-models", "codex-show", "codex-wait"}

// Call calls any tool of the server, such as codex-list, codex-models, and codex-show for what results leave out. With
// background, codex returns as soon as the turn runs; codex-wait returns the results, and codex-interrupt interrupts. It
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
