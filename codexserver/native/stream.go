package native

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// pace is how often pieces of a text are reported on the Chat wire. A text that comes at once
// has no pieces, as in Codex, and one that comes in thousands has few.
const pace = 500 * time.Millisecond

// incoming is the text of a response that is coming.
type incoming struct {
	conv *conversation

	mu    sync.Mutex // guards the rest
	all   strings.Builder
	sent  int         // bytes of it that were reported
	whole int         // bytes of it that are in a message that was reported
	timer *time.Timer // reports the rest; nil without a rest
}

// add adds a piece. It is reported at once, or soon.
func (s *incoming) add(piece string, atOnce bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.WriteString(piece)
	switch {
	case atOnce:
		s.report()
	case s.timer == nil:
		s.timer = time.AfterFunc(pace, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.timer != nil {
				s.report()
			}
		})
	}
}

// report reports the rest. The caller holds the lock.
func (s *incoming) report() {
	s.timer = nil
	if rest := s.all.String()[s.sent:]; rest != "" {
		s.sent += len(rest)
		s.conv.emit(protocol.AgentMessageDelta{Delta: rest})
	}
}

// message is called when a message was reported that has the text.
func (s *incoming) message() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = s.all.Len()
}

// end ends the response and returns its text, and what of it was in no message. The rest is
// reported if no message follows, or its beginning was reported. Nothing is reported after end.
func (s *incoming) end(whole bool) (text, rest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		if !whole || s.sent > 0 {
			s.report()
		}
	}
	text = s.all.String()
	rest = text[s.whole:]
	s.all, s.sent, s.whole, s.timer = strings.Builder{}, 0, 0, nil
	return text, rest
}

// stream requests a response, and again when it fails, as often as the provider's
// settings allow, and counts its tokens. If the provider refuses, the next one is asked. Request makes the request for
// the provider that answers. Nothing below it tries again. A response to the turn is reported as it arrives, one to
// another submission is not.
func (t *turn) stream(ctx context.Context, submission string, request func() *model.Request) (*model.Response, error) {
	progress := func(m protocol.EventMsg) {
		if count, ok := m.(protocol.TokenCount); ok {
			t.conv.meter.limits = count.RateLimits
			t.conv.emitAs(submission, t.conv.meter.report())
		} else if submission == "" {
			t.progress(m)
		}
	}
	t.release()
	began, lost := time.Now(), false // lost: the attempt before had no connection
	for n := 0; ; n++ {
		if err := t.conv.budget.request(); err != nil {
			return nil, err
		}
		resp, err := t.request(ctx, request(), progress)
		text, rest := t.incoming.end(err == nil)
		if err == nil && resp.Usage != nil {
			u := *resp.Usage // of some providers it has only the parts, of some only the total
			t.conv.budget.tokens += max(u.TotalTokens, u.InputTokens+u.OutputTokens)
			t.conv.meter.add(u, t.conv.contextWindow())
		}
		if err == nil {
			t.free = resp.Free
			return resp, nil
		}
		if said, ok := errors.AsType[*model.ProviderError](err); !ok || said.Status != 0 || !said.Again {
			t.conv.budget.requests-- // the model was not asked
		}
		wait, say, again := t.conv.provider().client.Again(err, n, began)
		if !again && ctx.Err() == nil && t.goElsewhere(err) {
			began, n = time.Now(), -1
			continue
		}
		if ctx.Err() != nil || !again {
			if !errors.Is(err, model.ErrContextWindow) {
				t.keep(text, rest)
			}
			return nil, t.conv.providers.refused(err)
		}
		before := lost
		if _, lost = errors.AsType[*model.ConnectError](err); say != "" && !(lost && before) {
			t.conv.emit(protocol.StreamError{Message: say})
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// release gives back the room of the last response.
func (t *turn) release() {
	if t.free != nil {
		t.free()
		t.free = nil
	}
}

// request sends one request.
func (t *turn) request(
	ctx context.Context, req *model.Request, progress func(protocol.EventMsg),
) (*model.Response, error) {
	leave, err := t.conv.engine.requests.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return t.conv.provider().client.Stream(ctx, req, progress)
}

// chat reports whether the provider's wire is Chat Completions.
func (c *conversation) chat() bool {
	return c.provider().cfg.Provider().WireAPI != config.WireResponses
}

// keep adds the text of a response that broke off to the history. The rest of it is in no event.
func (t *turn) keep(text, rest string) {
	if text != "" {
		t.conv.record(protocol.MessageItem{Role: "assistant",
			Content: []protocol.ContentItem{{Type: "output_text", Text: text}}})
	}
	if rest != "" {
		t.conv.checkWrite(t.conv.saved.file.Event(protocol.AgentMessage{Message: rest}))
	}
}

// progress reports a response while it arrives. With show_raw_agent_reasoning, each piece of a
// text is reported at once, as in Codex.
func (t *turn) progress(m protocol.EventMsg) {
	show := true
	switch m := m.(type) {
	case protocol.AgentMessageDelta:
		t.incoming.add(m.Delta, t.conv.cfg.ShowRawAgentReasoning || !t.conv.chat())
		return
	case model.ItemDone:
		t.emitItem(m.Item)
		if _, ok := m.Item.(protocol.MessageItem); ok {
			t.incoming.message()
		}
		return
	case protocol.AgentReasoningDelta, protocol.AgentReasoningSectionBreak:
		show = !t.conv.cfg.HideAgentReasoning
	case protocol.AgentReasoningRawContentDelta:
		show = t.conv.cfg.ShowRawAgentReasoning
	}
	if show {
		t.conv.emit(m)
	}
}

// emitItem reports a message or the reasoning of the model. Calls emit their own events.
func (t *turn) emitItem(item protocol.ResponseItem) {
	switch item := item.(type) {
	case protocol.MessageItem:
		if text := model.Answer(messageText(item)); text != "" {
			t.conv.emit(protocol.AgentMessage{Message: text})
		}
	case protocol.ReasoningItem:
		if !t.conv.cfg.HideAgentReasoning {
			for _, s := range item.Summary {
				t.conv.emit(protocol.AgentReasoning{Text: s.Text})
			}
		}
		if t.conv.cfg.ShowRawAgentReasoning {
			for _, s := range item.Content {
				if s.Type != model.CallSigns {
					t.conv.emit(protocol.AgentReasoningRawContent{Text: s.Text})
				}
			}
		}
	case protocol.RawItem:
		if item.Type == "web_search_call" {
			t.conv.emit(webSearchEnd(item))
		}
	}
}

func webSearchEnd(item protocol.RawItem) protocol.WebSearchEnd {
	var search struct {
		ID     string `json:"id"`
		Action struct {
			Query string `json:"query"`
		} `json:"action"`
	}
	_ = json.Unmarshal(item.Raw, &search) // missing members stay empty
	return protocol.WebSearchEnd{CallID: search.ID, Query: search.Action.Query}
}
