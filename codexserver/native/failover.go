package native

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxRefusal bounds the words of a provider in a text that has those of several, in bytes.
const maxRefusal = 300

// providers are those that may answer a conversation: the configured one, and those where it goes on
// when that one refuses. One of them answers at a time. Tools, policies and the sandbox are the
// conversation's, whoever answers.
type providers struct {
	list []provider
	at   int // the index of the one that answers
}

// provider is a provider, and the configuration for it.
type provider struct {
	client *model.Client
	cfg    *config.Config
	until  time.Time // it refuses until then, as far as it said
	said   error     // with which it refused in this turn, or nil
	asked  bool      // for the window of its model
	window int64     // that it said, in tokens, or 0
}

// providers returns the providers of a conversation.
func (e *Engine) providers(cfg *config.Config) providers {
	list := []provider{{client: e.client(cfg.ModelProvider, cfg.Provider()), cfg: cfg}}
	for _, to := range e.options.Failover.To {
		client, err := e.next(cfg, to)
		if err != nil {
			e.warn("failover: it leaves out provider " + to.Provider + ": " + err.Error())
		} else if to.Provider != cfg.ModelProvider || to.Model != cfg.Model {
			own := *cfg // without what was chosen for another model
			own.ModelProvider, own.Model, own.Verbosity, own.Tools.WebSearch = to.Provider, to.Model, "", false
			own.ContextWindow, own.AutoCompactTokenLimit, own.SupportsReasoningSummaries = 0, 0, false
			list = append(list, provider{client: client, cfg: &own})
		}
	}
	for i := range list[:len(list)-1] { // the last one is worth any wait
		list[i].client.MaxWait = time.Minute
	}
	return providers{list: list}
}

// next returns the client of a provider where turns go on, or why it cannot answer.
func (e *Engine) next(cfg *config.Config, to FailoverTo) (*model.Client, error) {
	p, ok := cfg.ModelProviders[to.Provider]
	if !ok {
		return nil, errors.New("it is not in model_providers")
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	client := e.client(to.Provider, p)
	return client, client.Ready()
}

// provider returns the provider that answers.
func (c *conversation) provider() *provider { return &c.providers.list[c.providers.at] }

// away reports whether another provider answers than the configured one.
func (c *conversation) away() bool { return c.providers.at > 0 }

// choose has the first provider answer the turn that begins whose limit is over, as far as that is
// known. If all have a limit, the same one answers as before.
func (c *conversation) choose() {
	p, now := &c.providers, time.Now()
	for i := range p.list {
		p.list[i].said = nil
	}
	first := p.list[0]
	to := slices.IndexFunc(p.list, func(p provider) bool { return !now.Before(p.until) })
	if to < 0 {
		to = p.at
	}
	switch {
	case to == 0 && !c.away():
	case to == 0:
		c.reroute(p.at, 0, "the limit of "+first.cfg.ModelProvider+" may be over")
	default:
		c.reroute(0, to, fmt.Sprintf("provider %s refuses until %s", first.cfg.ModelProvider,
			first.until.Format(time.DateTime)))
	}
}

// goElsewhere has the next provider answer if err is a refusal that it need not share, and reports
// whether it does. A provider refuses once in a turn.
func (t *turn) goElsewhere(err error) bool {
	p, now := &t.conv.providers, time.Now()
	said, ok := errors.AsType[*model.ProviderError](err)
	// no key is as one that is refused
	if !(ok && said.Elsewhere) && t.conv.provider().client.Ready() == nil || len(p.list) == 1 {
		return false
	}
	refusing := t.conv.provider()
	if refusing.said, refusing.until = err, (time.Time{}); ok && said.After > 0 {
		refusing.until = now.Add(said.After)
	}
	for i, one := range p.list {
		if one.said == nil && !now.Before(one.until) {
			t.conv.reroute(p.at, i, shorten(err.Error(), maxRefusal))
			return true
		}
	}
	return false
}

// reroute has a provider answer from now on in place of another one. It reads the history as far as
// every provider can.
func (c *conversation) reroute(from, to int, why string) {
	p := &c.providers
	was, is := p.list[from].cfg, p.list[to].cfg
	m := protocol.ModelReroute{FromProvider: was.ModelProvider, FromModel: was.Model, ToProvider: is.ModelProvider,
		ToModel: is.Model, Reason: why}
	if p.at != to {
		p.at = to
		c.history.items = portable(c.history.items)
		c.engine.options.Logger.Info("another provider answers", "conversation", c.ID(), "provider", m.ToProvider,
			"model", m.ToModel, "reason", why)
	}
	c.emit(m)
}

// refused returns the error of a turn in which providers had refused before. It names each.
func (p *providers) refused(err error) error {
	var before []string
	for _, one := range p.list {
		if one.said != nil && one.said != err {
			before = append(before, fmt.Sprintf("provider %s: %s", one.cfg.ModelProvider,
				shorten(one.said.Error(), maxRefusal)))
		}
	}
	if len(before) == 0 {
		return err
	}
	return fmt.Errorf("provider %s: %w; before it refused %s", p.list[p.at].cfg.ModelProvider, err,
		strings.Join(before, "; "))
}

// portable returns the items that every provider can read: without reasoning and what one provider
// alone knows, and with all calls as calls of functions.
func portable(items []protocol.ResponseItem) []protocol.ResponseItem {
	out := make([]protocol.ResponseItem, 0, len(items))
	for _, item := range items {
		switch its := item.(type) {
		case protocol.ReasoningItem, protocol.RawItem:
			continue
		case protocol.MessageItem:
			its.Phase = ""
			item = its
		}
		if call, ok := model.CallOf(item); ok {
			item = call.Function()
		} else if answer, ok := model.AnswerOf(item); ok {
			item = answer
		}
		out = append(out, item)
	}
	return out
}
