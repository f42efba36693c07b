package mcp

import (
	"context"
	"crypto/rand"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// Since 2025-11-25 a client may open links instead of showing forms. The question is then on the
// approvals page: the client only says whether it opens the link, and what it says approves nothing.

// modes are the ways in which a client can be asked.
type modes struct{ form, link bool }

// everyMode is that of a client that shows every question.
var everyMode = modes{form: true, link: true}

// modes returns how a client can be asked.
func (s *Server) modes(who elicit.Client) modes {
	return modes{form: who.CanAsk(), link: s.Links != nil && s.Asking.Links(who.Name) && who.CanOpen()}
}

func (m modes) any() bool { return m.form || m.link }

// shows reports whether a client of these modes can show a question.
func (m modes) shows(q *question) bool { return q.linked && m.link || !q.linked && m.form }

// capabilities returns what a client of these modes declares.
func (m modes) capabilities() string {
	switch {
	case m.form && m.link:
		return `{"elicitation":{"form":{},"url":{}}}`
	case m.form:
		return `{"elicitation":{}}`
	case m.link:
		return `{"elicitation":{"url":{}}}`
	}
	return `{}`
}

// prefersLink reports whether a client of modes m is asked by a link first.
func (s *Server) prefersLink(m modes) bool { return m.link && (s.Asking.Link || !m.form) }

// onlyLinks reports whether a client of modes m is asked only because it opens links: the page alone
// may answer.
func (s *Server) onlyLinks(host string, m modes) bool {
	return s.prefersLink(m) && s.Asking.Of(host) == setting.WherePage
}

// linked returns the question of r for a client: with a link to it if the client is asked by one. It
// returns an error if there is no link, and the client may be asked by nothing else.
func (s *Server) linked(ctx context.Context, who elicit.Client, r *approval.Request) (*elicit.Question, error) {
	asked := *r.Question // a copy, because others read it
	m := s.modes(who)
	if !s.prefersLink(m) {
		return &asked, nil
	}
	url, err := s.Links.QuestionLink(ctx, r)
	switch {
	case err == nil:
		asked.Link = &elicit.Link{URL: url, ID: rand.Text()}
	case ctx.Err() != nil, !m.form, s.Asking.Of(who.Name) == setting.WherePage:
		return nil, err
	}
	return &asked, nil
}

// place returns the place of a client that ask asks.
func (c *Client) place(who elicit.Client, ask board.Ask) board.Place {
	h := c.hosts.Host(who.Name)
	if c.server.prefersLink(c.server.modes(who)) {
		return board.NewLinked(h, ask)
	}
	return board.NewClient(h, ask)
}
