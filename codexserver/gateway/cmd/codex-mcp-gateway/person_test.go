package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// attempt is one call of the tool codex. Its name is in the prompt, in the command's line and in
// the model's answer.
type attempt struct {
	name   string
	began  time.Time
	task   string // its id, "" if the client got none
	status string // of the task at the end
	gone   bool   // the task was not known any more
	// end is what became of it, as the client knows.
	end  end
	told string // the result, or the error
	says []string

	// open is not nil if the person leaves the question of a task open until it is closed. The person closes asked
	// when the question comes.
	open  <-chan struct{}
	asked chan struct{}
}

// waits says that the question of an attempt is open. It reports whether the person leaves it open.
func (a *attempt) waits() bool {
	if a.open == nil {
		return false
	}
	select {
	case <-a.asked:
	default:
		close(a.asked)
	}
	select {
	case <-a.open:
		return false
	default:
		return true
	}
}

// end is what a client knows at the end of an attempt.
type end string

// The ends. The command ran exactly once if the client was told so, and not at all if the call
// was refused or failed before, or the client was told that it did not run.
const (
	ran     end = "ran"
	notRun  end = "declined"
	unknown end = "reported as unknown"
	failed  end = "failed"
	ranOnce end = "failed after it ran"
	refused end = "refused"
	lost    end = "no answer"
)

// person is a user with a client. Its fields before mu are set before it begins.
type person struct {
	t     *testing.T
	s     *site
	name  string
	token string

	mu       sync.Mutex
	tasks    int // how many the person has begun by workUntil
	attempts []*attempt
	answers
}

// answers are those to the requests of a person.
type answers struct {
	refused time.Time     // the first 503 since the last success, zero without one
	worst   time.Duration // the longest from a first 503 to the next success
	polled  time.Time     // the last successful poll of a task
	lost    []loss
}

// loss is a request that got no answer, or one that says that there is none.
type loss struct {
	began time.Time
	text  string
}

func (p *person) note(began time.Time, method string, status int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && status == http.StatusServiceUnavailable:
		if p.refused.IsZero() {
			p.refused = now
		}
	case err == nil && status == http.StatusOK:
		if !p.refused.IsZero() {
			p.worst = max(p.worst, now.Sub(p.refused))
			p.refused = time.Time{}
		}
		if method == "tasks/get" {
			p.polled = now
		}
	default:
		p.lost = append(p.lost, loss{began, fmt.Sprint(method, ": ", status, " ", err)})
	}
}

// look returns the answers so far, and the worst since the last look.
func (p *person) look() answers {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.answers
	p.worst = 0
	return seen
}

// attemptName finds the names of attempts, whose first group is the user.
var attemptName = regexp.MustCompile(`\b(u[0-9]+)-t[0-9]+-a[0-9]+\b`)

// see checks that a text that the person got is not about the work of another.
func (p *person) see(text string) {
	for _, found := range attemptName.FindAllStringSubmatch(text, -1) {
		if found[1] != p.name {
			p.t.Errorf("%s got a text about %s: %.1000s", p.name, found[0], text)
			return
		}
	}
}

// turnOf says how a person answers the questions of an attempt, as a number below 5.
func turnOf(name string) int {
	user, task := partsOf(name)
	return (user + task) % 5
}

func partsOf(name string) (user, task int) {
	_, _ = fmt.Sscanf(name, "u%d-t%d-", &user, &task) // a question without a name is accepted
	return user, task
}

func say(name string) string {
	if turnOf(name) == 3 {
		return "decline"
	}
	return "accept"
}

func (p *person) attempt(task, n int) *attempt {
	a := &attempt{name: fmt.Sprintf("%s-t%d-a%d", p.name, task, n), began: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts = append(p.attempts, a)
	return a
}

// mayHaveRun is what a client is told whose answer another server got already.
const mayHaveRun = "then it may have run"

// settle sets the end of an attempt from the answer of the model, if there is one.
func (a *attempt) settle(text string) {
	a.told = text
	switch {
	case strings.Contains(text, "done "+a.name+" ran"):
		a.end = ran
	case strings.Contains(text, "done "+a.name+" interrupted"), strings.Contains(text, mayHaveRun): // by an answer to another server
		a.end = unknown
	case strings.Contains(text, "done "+a.name+" not run"):
		a.end = notRun
	case strings.Contains(text, `"commands":[{"id":1,"command":"sh -c 'n=`+a.name+`; `):
		a.end = ranOnce
	default:
		a.end = failed
	}
}

// work carries out a task: it calls until a call has not been refused or lost.
func (p *person) work(ctx context.Context, task int) {
	for n := 1; ctx.Err() == nil; n++ {
		a := p.attempt(task, n)
		p.callOwn(ctx, a)
		if a.end == ran || a.end == ranOnce || a.end == notRun || a.end == unknown {
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
	p.t.Errorf("%s: task %d has no end in time", p.name, task)
}

// workUntil carries out one task after the other, at least one, until a channel is closed.
func (p *person) workUntil(ctx context.Context, enough <-chan struct{}) {
	for {
		p.mu.Lock()
		p.tasks++
		task := p.tasks
		p.mu.Unlock()
		p.work(ctx, task)
		select {
		case <-enough:
			return
		case <-ctx.Done():
			return
		default:
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (p *person) callOwn(ctx context.Context, a *attempt) {
	if turnOf(a.name) == 4 && a.open == nil {
		p.callRounds(ctx, a)
		return
	}
	status, body, err := p.send(ctx, "", asking, "tools/call", "codex", promptOf("run "+a.name))
	a.told = fmt.Sprint(status, " ", body, err)
	id, isTask := textOf(body, `"taskId":"`)
	switch {
	case err == nil && status == http.StatusServiceUnavailable:
		a.end = refused
	case err != nil || status != http.StatusOK:
		a.end = lost
	case isTask:
		a.task = id
		p.follow(ctx, a)
		a.gone = a.end == failed && strings.Contains(a.told, goneText)
	default:
		a.settle(body)
	}
}

// goneText is what a worker says of a task that it does not know.
const goneText = "no such task"

// callRounds calls without a task. The result is a question, and the next call answers it. An
// answer whose own answer is lost is sent again.
func (p *person) callRounds(ctx context.Context, a *attempt) {
	const able = `"elicitation":{"form":{}}`
	more := ""
	for again := 0; ; {
		status, body, err := p.send(ctx, "", able, "tools/call", "codex", promptOf("run "+a.name)+more)
		a.told = fmt.Sprint(status, " ", body, err)
		state, asked := textOf(body, `"requestState":"`)
		key, _ := textOf(body, `"inputRequests":{"`)
		switch {
		case err == nil && status == http.StatusServiceUnavailable && more == "":
			a.end = refused
			return
		case (err != nil || status != http.StatusOK) && more != "" && again < 3:
			again++
			pause(ctx, time.Second)
			continue
		case err != nil || status != http.StatusOK || strings.Contains(body, "it was used before"): // the worker has the answer
			a.end = lost
			return
		case !asked:
			a.settle(body)
			return
		}
		word := say(a.name)
		a.says = append(a.says, word)
		more = `,"requestState":"` + state + `","inputResponses":{"` + key + `":{"action":"` + word + `","content":{}}}`
	}
}

// follow polls a task until its end, and answers its questions.
func (p *person) follow(ctx context.Context, a *attempt) {
	a.end = lost
	for ; ctx.Err() == nil; pause(ctx, 400*time.Millisecond) {
		status, body, err := p.send(ctx, "", asking, "tasks/get", a.task, `"taskId":"`+a.task+`"`)
		if err != nil || status != http.StatusOK {
			if strings.Contains(body, goneText) {
				a.end, a.told = failed, body
				return
			}
			continue
		}
		switch state, _ := textOf(body, `"status":"`); state {
		case "completed", "failed", "cancelled":
			a.status = state
			a.settle(body)
			return
		case "input_required":
			if key, ok := textOf(body, `"inputRequests":{"`); ok && strings.Contains(body, a.name) && !a.waits() {
				p.answer(ctx, a, key)
			}
		case "working":
		default:
			p.t.Errorf("%s: the task %s: %s", p.name, a.task, body)
		}
	}
}

// answer answers a question. For some tasks each front gets an answer at the same time, and for
// some of these they contradict each other.
func (p *person) answer(ctx context.Context, a *attempt, key string) {
	says := []string{say(a.name)}
	switch turnOf(a.name) {
	case 1:
		says = []string{"accept", "accept"}
	case 2:
		says = []string{"accept", "decline"}
	}
	if says[0] == "decline" {
		pause(ctx, rand.N(2*time.Second)) // parts die while a question is open
	}
	a.says = append(a.says, says...)
	var answers sync.WaitGroup
	for i, word := range says {
		url := ""
		if len(says) > 1 {
			url = p.s.fronts[i].url
		}
		answers.Go(func() {
			_, _, _ = p.send(ctx, url, asking, "tasks/update", a.task, `"taskId":"`+a.task+`","inputResponses":{"`+key+`":{"action":"`+word+`","content":{}}}`) // the next poll shows what came of it
		})
	}
	answers.Wait()
}

// bounded is the longest that a request takes while parts of the service die. Only the time until
// a worker has started is longer on a slow machine.
const bounded = 30 * time.Second

// maxTries is how often a proxy sends a request that no front has begun.
const maxTries = 4

// send sends a request of 2026-07-28, of a client with capabilities, to the front at a URL. If that is "", it is sent
// as by the proxy of README.md: to a front that is ready, and to the next one if it cannot be reached or answers with
// 503.
func (p *person) send(ctx context.Context, url, able, method, name, params string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, bounded)
	defer cancel()
	if url != "" {
		return p.sendTo(ctx, url, able, method, name, params)
	}
	began := time.Now()
	defer func() { p.note(began, method, status, err) }()
	for i, first := 0, rand.N(frontCount); i < maxTries; i++ {
		front := p.s.fronts[(first+i)%frontCount]
		if !front.healthy() {
			continue
		}
		var refused *net.OpError
		status, body, err = p.sendTo(ctx, front.url, able, method, name, params)
		if status != http.StatusServiceUnavailable && !(errors.As(err, &refused) && refused.Op == "dial") {
			return status, body, err
		}
	}
	return http.StatusServiceUnavailable, body, nil
}

func (p *person) at(url string) client {
	return client{p.t, servertest.HTTPClient{URL: url, Token: p.token}}
}

func (p *person) sendTo(ctx context.Context, url, able, method, name, params string) (status int, body string, err error) {
	status, body, err = p.at(url).Ask(ctx, able, method, name, params)
	p.see(body)
	return status, body, err
}
