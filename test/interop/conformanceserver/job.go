package main

import (
	"context"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// always serves a tool that is a task whenever it is called, so only to requests
// that declare the extension.
func always(do work) func(context.Context, *call) (modern.AnyCallToolResult, error) {
	return func(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
		if err := needsTasks(c.meta.ClientCapabilities); err != nil {
			return nil, err
		}
		return c.server.tasks.start(c.client, do), nil
	}
}

// slowCompute is a task where the request declares the extension, and else makes
// its caller wait.
func slowCompute(ctx context.Context, c *call) (modern.AnyCallToolResult, error) {
	var a struct {
		Seconds float64 `json:"seconds"`
		Label   string  `json:"label"`
	}
	if err := arguments(c.arguments, &a); err != nil {
		return nil, err
	}
	do := func(ctx context.Context, _ *task) (*modern.CallToolResult, error) {
		if err := wait(ctx, time.Duration(a.Seconds*float64(time.Second))); err != nil {
			return nil, err
		}
		return say("computed %s", a.Label), nil
	}
	if needsTasks(c.meta.ClientCapabilities) != nil {
		return do(ctx, nil)
	}
	return c.server.tasks.start(c.client, do), nil
}

// askThenWork asks before it becomes a task.
func askThenWork(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	if err := needsTasks(c.meta.ClientCapabilities); err != nil {
		return nil, err
	}
	name, ok := c.elicit("user_name", nameForm)
	if !ok {
		return c.unanswered()
	}
	return c.server.tasks.start(c.client, func(context.Context, *task) (*modern.CallToolResult, error) {
		return decided(name, "Hello, %s!", name.field("name")), nil
	}), nil
}

// fail is a tool that fails, which is a result.
func fail(ctx context.Context, _ *task) (*modern.CallToolResult, error) {
	if err := wait(ctx, time.Second); err != nil {
		return nil, err
	}
	r := say("it failed, as it should")
	r.IsError = new(true)
	return r, nil
}

// crash is a server that fails, which has no result.
func crash(context.Context, *task) (*modern.CallToolResult, error) {
	return nil, errors.New("it crashed, as it should")
}

func confirmDelete(ctx context.Context, k *task) (*modern.CallToolResult, error) {
	out, err := k.elicit(ctx, &elicit.Question{Message: "Delete it?", NotDone: "nothing was deleted", Once: true})
	if err != nil {
		return nil, err
	}
	return decided(out[0], "deleted"), nil
}

func askBoth(ctx context.Context, k *task) (*modern.CallToolResult, error) {
	out, err := k.elicit(ctx, nameForm, colorForm)
	if err != nil {
		return nil, err
	}
	return say("%s, %s", out[0].Decision, out[1].Decision), nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
