package webaddr

import (
	"net/netip"
	"strings"
)

// reserved4 are the IPv4 networks that are not on the public Internet, by IANA's registry of
// special-purpose addresses, and 168.63.129.16, where Azure's machines find their metadata. Those
// of other clouds are in these networks.
const reserved4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
	192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`

// reserved6 are those within 2000::/3, outside of which no IPv6 address is public: for protocols
// such as Teredo, for documents, and 6to4.
const reserved6 = `2001::/23 2001:db8::/32 2002::/16 3fff::/20`

// Loopback reports whether a host, without brackets, is localhost or a loopback address. It does not
// resolve names, since an attacker may control the answer.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Public reports whether an address is on the public Internet. Addresses that stand for an IPv4
// address, such as those of NAT64, are not: what they lead to depends on the network.
func Public(a netip.Addr) bool {
	if a.Zone() != "" || a.Is4In6() || !a.IsGlobalUnicast() {
		return false
	}
	nets := reserved4
	if a.Is6() {
		nets = reserved6
		if !netip.MustParsePrefix("2000::/3").Contains(a) {
			return false
		}
	}
	for text := range strings.FieldsSeq(nets) {
		if netip.MustParsePrefix(text).Contains(a) {
			return false
		}
	}
	return true
}
