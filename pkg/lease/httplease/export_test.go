package httplease

// Codes are the codes of all problems.
func Codes() (codes []string) {
	for _, p := range problems {
		codes = append(codes, p.code)
	}
	return codes
}
