package hosts_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// internet is one whose hosts echo what they get, or do something else.
type internet struct {
	hosts.Proxy
	host    func(c net.Conn)
	names   int      // that were resolved
	dialled []string // addresses
}

// leading returns an internet whose names all lead to addresses, at each lookup to the next ones.
func leading(lookups ...string) *internet {
	p := &internet{host: func(c net.Conn) { _, _ = io.Copy(c, c) }}
	p.Resolve = func(context.Context, string) (all []netip.Addr, err error) {
		for a := range strings.FieldsSeq(lookups[p.names%len(lookups)]) {
			all = append(all, netip.MustParseAddr(a))
		}
		p.names++
		return all, nil
	}
	p.Dial = func(_ context.Context, _, to string) (net.Conn, error) {
		p.dialled = append(p.dialled, to)
		if strings.HasPrefix(to, "93.184.215.9:") {
			return nil, errors.New("nobody is there")
		}
		near, far := net.Pipe()
		go func() { p.host(far); far.Close() }()
		return near, nil
	}
	p.Upstream = func(*http.Request) (*url.URL, error) { return nil, nil }
	return p
}

// allow allows one host.
func allow(_ context.Context, host string) string {
	if host == "one.example.com" {
		return ""
	}
	return "the user said no"
}

// open serves a connection of the command's, which sends text.
func open(t *testing.T, n *hosts.Network, text string) net.Conn {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		n.Serve(far)
		far.Close()
		close(done)
	}()
	t.Cleanup(func() { n.Close(); near.Close(); <-done })
	go func() { _, _ = io.WriteString(near, text) }()
	return near
}

// came ends a network, and returns what came of its hosts: the reason, whether it was decided, and whether it was reached.
func came(n *hosts.Network) (all string) {
	for _, a := range n.Close() {
		all += fmt.Sprintf("%s %q %t %t\n", a.Host, a.Why, a.Decided, a.Reached)
	}
	return all
}

// status is the first line of what a connection gets, without the version.
func status(c net.Conn) string {
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(strings.TrimRight(line, "\r\n"), "HTTP/1.1 ")
}

const (
	well      = "200 Connection established"
	noRequest = "400 codex-mcp: not a request to an HTTP proxy"
)

func connect(host string) string {
	return "CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
}

// TestRequests has what a command may say to the proxy. Only what begins with 200 reaches a host, and is resolved. TestHost of
// package decide has more that is no name.
func TestRequests(t *testing.T) {
	t.Parallel()
	const noName, noPort = "want a name in ASCII with a dot, of at most 100 characters, and no address", "only port 443 is possible from the sandbox"
	no := func(shown, why string) string { return "403 codex-mcp: " + shown + " was refused: " + why }
	long := strings.Repeat("a", 50) + "." + strings.Repeat("b", 49)
	for request, want := range map[string]string{
		connect("one.example.com"):                                                               well,
		connect("ONE.Example.com."):                                                              well, // the same host
		"CONNECT one.example.com:443 HTTP/1.0\r\n\r\n":                                           well,
		"CONNECT one.example.com:443 HTTP/1.1\r\nHost: other.example.com\r\n\r\n":                well, // what counts is the first line
		connect("two.example.com"):                                                               no("two.example.com", "the user said no"),
		connect(long + "b"):                                                                      no(`"`+long+`"`, noName),
		connect("evil.com\u202ecom.example"):                                                     no(`"evil.com\u202ecom.example:443"`, noName),
		connect("93.184.215.14"):                                                                 no(`"93.184.215.14:443"`, noName),
		"CONNECT me@one.example.com:443 HTTP/1.1\r\n\r\n":                                        no(`"one.example.com:443"`, noName),
		"CONNECT one.example.com:80 HTTP/1.1\r\n\r\n":                                            no(`"one.example.com:80"`, noPort),
		"CONNECT one.example.com:0443 HTTP/1.1\r\n\r\n":                                          no(`"one.example.com:0443"`, noPort),
		"CONNECT one.example.com HTTP/1.1\r\n\r\n":                                               no(`"one.example.com"`, noPort),
		"GET http://one.example.com/ HTTP/1.1\r\nHost: one.example.com\r\n\r\n":                  no(`"one.example.com"`, "only HTTPS is possible from the sandbox"),
		"\x16\x03\x01\x02\x00 a handshake \r\n\r\n":                                              noRequest,
		"CONNECT one.example.com:443 HTTP/1.1\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n": noRequest,
	} {
		p := leading("93.184.215.14")
		n := p.Network(t.Context(), allow)
		must.Equal(t, fmt.Sprintf("%.60q", request), want, status(open(t, n, request)))
		must.Equal(t, "resolved", want == well, p.names > 0)
	}
}

// TestAddresses resolves an allowed name. One forbidden address refuses it: a name that leads to two may lead to either. What
// is dialled is what was looked at, and another lookup is looked at, too.
func TestAddresses(t *testing.T) {
	t.Parallel()
	const mine = "127.0.0.1 127.255.255.254 0.0.0.0 :: ::1 ::ffff:127.0.0.1 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 " +
		"100.100.100.200 192.0.0.192 168.63.129.16 198.18.0.1 224.0.0.1 255.255.255.255 240.0.0.1 fe80::1 fe80::1%eth0 2606:2800:21f::1%eth0 " +
		"fc00::1 fd00:ec2::254 ff02::1 fec0::1 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: 2001::1 2001:db8::1 ::127.0.0.1"
	rows := map[string]string{
		"93.184.215.14": "93.184.215.14:443", "2606:2800:21f::1": "[2606:2800:21f::1]:443", "::ffff:93.184.215.14": "93.184.215.14:443",
		"64:ff9b::5db8:d70e": "[64:ff9b::5db8:d70e]:443", "93.184.215.14 2606:2800:21f::1": "93.184.215.14:443",
		"93.184.215.9 93.184.215.14": "93.184.215.9:443 93.184.215.14:443", // nobody is at the first
		"93.184.215.14 127.0.0.1":    "", "93.184.215.14 fd00::1": "",
	}
	for a := range strings.FieldsSeq(mine) {
		rows[a] = ""
	}
	for _, own := range must.Get(net.InterfaceAddrs())(t) {
		rows[own.(*net.IPNet).IP.String()] = ""
	}
	const no = "403 codex-mcp: one.example.com was refused: it leads to an address of this machine, of a private network or of another special kind"
	for addrs, dialled := range rows {
		p := leading(addrs, "127.0.0.1")
		n := p.Network(t.Context(), allow)
		want := map[bool]string{true: well, false: no}[dialled != ""]
		must.Equal(t, addrs, want, status(open(t, n, connect("one.example.com"))))
		must.Equal(t, "another lookup", no, status(open(t, n, connect("one.example.com"))))
		must.Equal(t, addrs+" dials", dialled, strings.Join(p.dialled, " "))
		must.Equal(t, addrs+" comes to", fmt.Sprintf("one.example.com %q false %t\n", no[44:], dialled != ""), came(n))
	}
}

// TestWaiting has programs that do not wait for an answer, and try again, and one that talks meanwhile; one that opens a
// connection an hour before its request; and one whose command ends before the answer.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"": well, "no:\r\n\u202ewhy": `403 codex-mcp: one.example.com was refused: no: \u{202e}why`} {
		synctest.Test(t, func(t *testing.T) {
			questions, p := 0, leading("93.184.215.14")
			n := p.Network(t.Context(), func(ctx context.Context, host string) string {
				questions++
				select {
				case <-time.After(40 * time.Second):
					return answer
				case <-ctx.Done():
					return "the command has ended"
				}
			})
			idle := open(t, n, "")
			time.Sleep(time.Hour)
			for range 5 {
				c := open(t, n, connect("one.example.com"))
				time.Sleep(5 * time.Second)
				c.Close()
			}
			early := strings.Repeat("early ", 2000)
			patient, begun := open(t, n, connect("one.example.com")+early), time.Now()
			text := "HTTP/1.1 " + want + "\r\n"
			if want == well {
				text += "\r\n" + early
			}
			got := make([]byte, len(text))
			must.Get(io.ReadFull(patient, got))(t)
			must.Equal(t, "the answer", text, string(got))
			must.Equal(t, "waited", 15*time.Second, time.Since(begun))
			go func() { _, _ = io.WriteString(idle, connect("one.example.com")) }()
			must.Equal(t, "later", want, status(idle))
			must.Equal(t, "questions", 1, questions)
			must.Equal(t, "dialled, and not for who has left", map[bool]int{true: 2}[want == well], len(p.dialled))
			late := open(t, n, connect("two.example.com")+"early")
			synctest.Wait()
			must.Equal(t, "all", fmt.Sprintf("one.example.com %q true %t\ntwo.example.com \"the command has ended\" true false\n", answer, want == well), came(n))
			must.Get(io.ReadAll(patient))(t) // to its end, which is that of the network
			must.Equal(t, "withdrawn", "403 codex-mcp: two.example.com was refused: the command has ended", status(late))
		})
	}
}

// TestManyHosts asks for more hosts than a person is asked about at a time, and than are remembered.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		n := leading("").Network(t.Context(), func(ctx context.Context, _ string) string {
			asked.Add(1)
			<-ctx.Done()
			return "no"
		})
		var last net.Conn
		for i := range 101 {
			last = open(t, n, connect(fmt.Sprintf("h%d.example.com", i)))
			synctest.Wait()
		}
		must.Equal(t, "the last", "403 codex-mcp: h100.example.com was refused: the command has asked for 100 hosts", status(last))
		must.Equal(t, "questions at a time", int32(8), asked.Load())
		must.Equal(t, "hosts that are kept", 100, len(n.Close()))
		must.Equal(t, "questions", int32(100), asked.Load())
	})
}

// TestUpstream goes through the proxy of the server's own environment. The name goes there unresolved.
func TestUpstream(t *testing.T) {
	t.Parallel()
	const cannot = "502 codex-mcp: one.example.com cannot be reached: the server's own proxy "
	for _, tt := range []struct{ proxy, answer, asked, want string }{
		{"http://user:p%40ss@proxy.example:3128", "HTTP/1.1 200 OK\r\n\r\n", "proxy.example:3128 CONNECT one.example.com:443 Basic dXNlcjpwQHNz", well},
		{"http://proxy.example", "HTTP/1.1 407 Who are you\r\n\r\n", "proxy.example:80 CONNECT one.example.com:443 ", cannot + "answered 407"},
		{"http://proxy.example", "nonsense\n", "proxy.example:80 CONNECT one.example.com:443 ", cannot + "does not answer as one"},
		{"http://proxy.example", "HTTP/1.1 200 OK\r\n\r\nmore", "proxy.example:80 CONNECT one.example.com:443 ", cannot + "does not answer as one"},
		{"socks5://proxy.example", "", "", cannot + "is none of HTTP"},
	} {
		asked, p := "", leading("")
		p.Upstream = func(r *http.Request) (*url.URL, error) {
			must.Equal(t, "the request", "https://one.example.com", r.URL.String())
			return url.Parse(tt.proxy)
		}
		p.host = func(c net.Conn) {
			r, _ := http.ReadRequest(bufio.NewReader(c))
			asked = p.dialled[0] + " " + r.Method + " " + r.RequestURI + " " + r.Header.Get("Proxy-Authorization")
			_, _ = io.WriteString(c, tt.answer)
			_, _ = c.Read(make([]byte, 1))
		}
		must.Equal(t, tt.proxy, tt.want, status(open(t, p.Network(t.Context(), allow), connect("one.example.com"))))
		must.Equal(t, "asked", tt.asked, asked)
		must.Equal(t, "resolved", 0, p.names)
	}
}

// TestWithin carries many bytes by TLS, within which the names differ from the proxy's. SECURITY.md says that this is open.
func TestWithin(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "this is "+r.Host+" by "+r.TLS.ServerName+" with ")
		_, _ = io.Copy(w, r.Body)
	}))
	defer s.Close()
	p := leading("93.184.215.14")
	p.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	}
	n := p.Network(t.Context(), allow)
	program := s.Client().Transport.(*http.Transport)
	program.Proxy, program.TLSClientConfig.ServerName = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}), "two.example.com"
	program.DialContext = func(context.Context, string, string) (net.Conn, error) { return open(t, n, ""), nil }
	data := strings.Repeat("some bytes", 50_000)
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://one.example.com", strings.NewReader(data)))(t)
	request.Host = "three.example.com"
	answer := must.Get(s.Client().Do(request))(t)
	got := must.Get(io.ReadAll(answer.Body))(t)
	must.Equal(t, "the server", "this is three.example.com by two.example.com with "+data, string(got))
	program.CloseIdleConnections()
	must.Equal(t, "all", "one.example.com \"\" true true\n", came(n))
}
