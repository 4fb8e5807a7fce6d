package httplease

// Codes are the codes of all problems.
func Codes() (codes []string) {
	for _, p := range problems {
		codes = append(codes, p.code)
	}
	return codes
}

// Transport is that of a client that is given none.
var Transport = transport
