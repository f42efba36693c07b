package page

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
)

// A question's link opens that question, in one tab, and nothing else: a client that shows links
// gets it, and need not be trusted with the page. Its secret works once, until the question is
// answered. The token that a tab gets for it stays in the tab.

// keys are the secrets of the unused links of a question, and the tokens of its tabs, the newest
// last. The board's mutex guards them.
type keys struct{ secrets, tokens []string }

// maxKeys is how many of each there may be; a new one replaces the oldest.
const maxKeys = 8

// addKey adds a key to a list, and returns it.
func addKey(list *[]string) string {
	if len(*list) == maxKeys {
		*list = slices.Delete(*list, 0, 1)
	}
	*list = append(*list, newSecret())
	return (*list)[len(*list)-1]
}

// QuestionLink implements [approval.Linker]. At most 8 unused links to a question work.
func (p *Page) QuestionLink(ctx context.Context, r *approval.Request) (string, error) {
	for {
		secret, changed, err := p.board.linkTo(r)
		switch {
		case err != nil:
			return "", err
		case secret != "":
			return p.link(secret), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		case <-p.done:
			return "", errClosed
		}
	}
}

// linkTo returns the secret of a new link to an open question. If the board does not have the
// question yet, it returns a channel that is closed at the next change.
func (b *board) linkTo(r *approval.Request) (secret string, changed <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.byRequest[r]; q != nil && q.open() {
		return addKey(&q.keys.secrets), nil, nil
	}
	return "", b.changed, b.unshown[r]
}

func (q *question) open() bool { return q.entry.Question.State == stateOpen }

// admit exchanges the secret of a link to an open question for a token of that question. The link
// does not work again.
func (b *board) admit(secret string) (token string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.byRequest {
		if i := find(q.keys.secrets, secret); i >= 0 && q.open() {
			q.keys.secrets = slices.Delete(q.keys.secrets, i, i+1)
			return addKey(&q.keys.tokens), true
		}
	}
	return "", false
}

// question returns the id of the question that a token opens, 0 for none.
func (b *board) question(token string) (id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, q := range b.questions {
		if find(q.keys.tokens, token) >= 0 {
			id = n
		}
	}
	return id
}

// find returns the index of a key, or -1. It compares it with all, in constant time.
func find(list []string, key string) int {
	found := -1
	for i, k := range list {
		if same(k, key) {
			found = i
		}
	}
	return found
}

// access is what a request may see and answer: the page, or one question.
type access struct {
	*session
	question int // 0 for the page
}

// access returns what the token of a request opens. It refuses a request without a valid token.
func (p *Page) access(w http.ResponseWriter, r *http.Request) (access, bool) {
	if given := r.Header.Values("Authorization"); len(given) == 1 {
		token, bearer := strings.CutPrefix(given[0], "Bearer ")
		if id := p.board.question(token); id != 0 && bearer {
			known(r.Context())
			return access{&session{token: token}, id}, true
		}
	}
	s := p.session(w, r)
	return access{session: s}, s != nil
}

// holds reports whether the token is still valid.
func (p *Page) holds(a access) bool {
	if a.question != 0 {
		return p.board.question(a.token) == a.question
	}
	return p.door.session(a.token) != nil
}

// narrow makes a stream one of a question, unless that is 0.
func (w *work) narrow(s *stream, question int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.question = question
}

// narrow leaves a question alone in the update, unless that is 0. It reports whether anything is
// left.
func (u *update) narrow(question int) bool {
	if question == 0 {
		return true
	}
	all := u.Conversations
	u.Order, u.Conversations, u.Tasks = []string{}, []conversationView{}, nil
	for _, c := range all {
		if i := slices.IndexFunc(c.Entries, func(e entry) bool { return e.ID == question }); i >= 0 {
			c.Entries = c.Entries[i : i+1]
			u.Order, u.Conversations = append(u.Order, c.ID), append(u.Conversations, c)
		}
	}
	return len(u.Conversations) > 0
}

// decides reports whether a narrowed update has the decision of its question.
func (u *update) decides(question int) bool {
	return question != 0 && len(u.Conversations) > 0 && u.Conversations[0].Entries[0].Question.State == stateDecided
}
