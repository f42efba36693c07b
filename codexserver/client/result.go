package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
)

// Result is the result of a turn: what the server says that it did, and what this client knows besides. Its
// Content has the answer and the notes as one text.
type Result struct {
	protocol.TurnResult `json:",embed"`
	// Task is the id of the task of MCP, "" if the turn was none.
	Task string `json:"task,omitzero"`
	// Answer is the last message of the turn, or why there is none.
	Answer string `json:"answer"`
	// Notes are for the user: why the answer is not whole, what could not be asked, and
	// what was ignored.
	Notes []string `json:"notes,omitempty"`
	// Raw is the result of tools/call.
	Raw json.RawMessage `json:"-"`
}

// Err returns nil if the turn is completed, running or waiting, and otherwise a [*TurnError].
func (r *Result) Err() error {
	switch r.Status {
	case protocol.StatusCompleted, protocol.StatusRunning, protocol.StatusWaiting:
		return nil
	}
	return &TurnError{r.ThreadID, r.Status, r.Answer}
}

// TurnError is a turn without a whole answer as an error.
type TurnError struct {
	// Thread is the conversation, which can be continued.
	Thread string
	// Status is how the turn ended.
	Status protocol.TurnStatus
	// Answer is the [Result]'s.
	Answer string
}

// Error implements error.
func (e *TurnError) Error() string {
	ended := "the turn is " + string(e.Status)
	switch e.Status {
	case protocol.StatusFailed:
		ended = "the turn failed"
	case protocol.StatusAborted:
		ended = "the turn was aborted"
	case protocol.StatusIncomplete:
		ended = "the answer is incomplete"
	}
	return ended + ": " + mcpcall.Brief(e.Answer)
}

// ToolError is a failure that the server reports for a call without a turn, such as a
// conversation that it does not know.
type ToolError struct {
	// Tool is the name of the tool.
	Tool string
	// Message is the server's.
	Message string
}

// Error implements error.
func (e *ToolError) Error() string { return e.Tool + ": " + mcpcall.Brief(e.Message) }

// toolResult decodes the result of tools/call, and the texts that are for everybody.
func toolResult(raw json.RawMessage) (r mcptypes.CallToolResult, texts []string, err error) {
	if err := jsonv2.Unmarshal(raw, &r); err != nil {
		return r, nil, fmt.Errorf("client: %w: %s", mcpcall.ErrAnswer, mcpcall.Brief(err.Error()))
	}
	for _, block := range r.Content {
		text, ok := block.(*mcptypes.TextContent)
		if !ok || text.Annotations != nil && !slices.Contains(text.Annotations.Audience, mcptypes.RoleUser) &&
			len(text.Annotations.Audience) > 0 {
			continue
		}
		texts = append(texts, text.Text)
	}
	return r, texts, nil
}

// turnResult decodes the result of a turn.
func turnResult(raw json.RawMessage) (Result, error) {
	r, texts, err := toolResult(raw)
	if err != nil {
		return Result{}, err
	}
	result := Result{Raw: raw}
	if len(r.StructuredContent) > 0 {
		if err := jsonv2.Unmarshal(r.StructuredContent, &result.TurnResult); err != nil {
			return Result{}, fmt.Errorf("client: %w: structuredContent: %s", mcpcall.ErrAnswer,
				mcpcall.Brief(err.Error()))
		}
	}
	result.Answer = result.Content
	if len(texts) > 0 {
		result.Answer = texts[0]
		for _, note := range texts[1:] {
			result.Notes = append(result.Notes, strings.TrimPrefix(note, "\n"))
		}
	}
	aborted := result.Status == protocol.StatusAborted
	result.Status = cmp.Or(result.Status, protocol.StatusCompleted)
	if r.IsError != nil && *r.IsError && !aborted {
		result.Status = protocol.StatusFailed
	}
	return result, nil
}

// LostError means that the connection ended before the answer to a request that may have begun
// work. The request is not sent again. What it did remains.
type LostError struct {
	// Thread is the conversation, "" if it is not known: continue it with [Task].Thread.
	Thread string
	// Task is the id of the task, "" if it is not known: ask for it with [Client.Resume].
	Task string
	// Err is what happened.
	Err error
}

// Error implements error.
func (e *LostError) Error() string {
	where := "whether the turn began is not known"
	switch {
	case e.Task != "":
		where = "task " + e.Task
	case e.Thread != "":
		where = "conversation " + e.Thread
	}
	return fmt.Sprintf("client: the server's answer was lost (%s): %v", where, e.Err)
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// ErrAnswer is the error of an answer that cannot be read. The turn may have run.
var ErrAnswer error = mcpcall.ErrAnswer
