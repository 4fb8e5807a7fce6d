# Pawl: make targets. `make` alone prints them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

LAMBDA_BUILD := CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w"

# Node 20 is past its end of life; the CDK says so in a box at every start.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION ?= 20
CDK := cd infra && npx --yes aws-cdk@2.1148.1
# What is checked is what is deployed.
ASSEMBLY := ../cdk.out

# AWS tells neither what to do.
define deploy_hint

If AWS would not reserve concurrency ("UnreservedConcurrentExecution below its minimum"): the account has too
little of it. Ask for more under Service Quotas, or reserve nothing, which suits an account that has 10 in all:
  CDK_ARGS="-c pawl:acquire-concurrency=-3 -c pawl:concurrency=-7" make deploy   # or in infra/cdk.json
If there is no bootstrap stack: make bootstrap.
endef
export deploy_hint

.PHONY: help
help: ## print this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: serve
serve: ## run the whole service on this machine (ADDR, DATA_DIR, AUTH: see localtest/server)
	@mkdir -p .tools; go build -o .tools/server ./localtest/server; exec .tools/server

.PHONY: test
test: stores ## run every test, with the race detector; installs what it needs where it may
	go test -race -timeout 15m $$(go list ./... | grep -v /infra)
	go test -timeout 15m ./infra/... # without the detector: it would compile the CDK a second time

.PHONY: stores
stores: ## install what tests run: stores, an emulator of Lambda, tools that read the spec
	@go run ./localtest/stores

.PHONY: story-ledger story-render
story-ledger: ## watch a paused worker corrupt a ledger in PostgreSQL, and a guard prevent it
	@go run ./localtest/stories/ledger
story-render: ## watch a paused worker replace a film on S3, and a guard prevent it
	@go run ./localtest/stories/render

.PHONY: rehearse-restore
rehearse-restore: ## restore a backup on this machine, step by step
	@go run ./localtest/rehearsal

.PHONY: check
check: ## gofmt, vet, staticcheck, tidy go.mod; spec and layout
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); if [ -n "$$files" ]; then echo "not formatted: $$files"; exit 1; fi
	go mod tidy -diff
	go vet ./...
	go tool staticcheck ./...
	go test ./localtest/architecture
	go test -run 'Spec' ./pkg/lease/httplease

.PHONY: ci
ci: export CI = true
ci: ## what .ci/run runs: check, then test and bench-once, where nothing may be skipped
	@$(MAKE) --no-print-directory -j2 --output-sync=target check stores
	@$(MAKE) --no-print-directory -o stores test bench-once

.PHONY: build
build: ## compile the Lambda functions for arm64 into dist
	GOARCH=arm64 $(LAMBDA_BUILD) -o dist/api/bootstrap ./functions/api
	GOARCH=arm64 $(LAMBDA_BUILD) -o dist/sweeper/bootstrap ./functions/sweeper

.PHONY: bootstrap synth diff deploy destroy
bootstrap: build ## once for each AWS account and Region: what the CDK needs there
	$(CDK) bootstrap $(CDK_ARGS)
synth: build ## write the CloudFormation templates to cdk.out; needs node, no network, no account
	cd infra && go run ./app
diff: build ## what make deploy would change
	$(CDK) diff $(CDK_ARGS)
deploy: build ## put Pawl into the AWS account of your credentials, unless the table would be lost
	$(CDK) synth --quiet $(CDK_ARGS)
	cd infra && go run ./retained check $(ASSEMBLY)
	$(CDK) deploy --app $(ASSEMBLY) --all $(CDK_ARGS) || { echo "$$deploy_hint"; exit 1; }
	cd infra && go run ./retained protect $(ASSEMBLY)
destroy: build ## delete the API stack; the table stays
	$(CDK) destroy Pawl $(CDK_ARGS)

.PHONY: bench bench-once
bench: ## the benchmarks that localtest/README.md speaks of, each against its yardstick in the same run
	go test -run '^$$' -bench . -benchtime 2s ./pkg/...
	go test -run '^$$' -bench . -benchtime 20x ./localtest/server
bench-once: ## every benchmark once, which shows that it works and nothing else
	go test -race -run '^$$' -bench . -benchtime 1x \
		$$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n 1 dirname | sort -u)

# What depends on chance. ROUNDS multiplies what the first do, and how often the
# others run. Package architecture tests that all of them are there.
define soak
ROUNDS pkg/lease/protocol TestNoInterleavingOfCallersBreaksThePromises
ROUNDS pkg/lease/dynamolease TestTheExpressionsSayToAllCallersWhatRecordSays
ROUNDS pkg/lease/dynamolease TestTwoHundredCallersOfHostsWhoseClocksAreOffShareALock
ROUNDS pkg/guard/dynamoguard TestTheGuardStandsTheHammer
ROUNDS pkg/guard/dynamoguard TestTheGuardStandsTheHammerOnABadNetwork
ROUNDS pkg/guard/redisguard TestTheGuardStandsTheHammer
ROUNDS pkg/guard/s3guard TestGuardUnderTheHammer
ROUNDS pkg/guard/s3guard TestOfTwoTokensThatRaceTheHigherOneStays
ROUNDS pkg/guard/s3guard TestAReaderGetsOneWholeVersionWhateverHappens
ROUNDS pkg/guard/sqlguard TestPromisesAreKeptUnderTheHammer
ROUNDS localtest/server TestSixtyFourCallersNeverHoldOneLockAtOnce
ROUNDS localtest/sdk TestTheLockOfAKilledProcessIsTakenOverInTime
ROUNDS localtest/sdk TestAProcessThatIsKilledWhileItWaitsIsGrantedTheLockOnceAtMost
ROUNDS localtest/sdk TestInABlackholeTheWorkHasEndedBeforeTheNextHolderBegins
ROUNDS localtest/sdk TestAProcessThatWasPausedForThreeTTLsDoesNothingUnderItsOldToken
ROUNDS localtest/stories/ledger TestAPausedWorkerCannotCorruptAGuardedLedger
ROUNDS localtest/stories/render TestAPausedWorkerCannotReplaceAGuardedFilm
count pkg/lease/leasetest TestAFlakyServiceKeepsTheLockSafe
count pkg/lease/leasetest TestAFlakyServiceIsLinearizable
count pkg/lease/dynamolease TestThroughRandomFaultsPromisesAreKept
count pkg/lease/dynamolease TestThroughRandomFaultsTheLockStaysSafe
count pkg/lease/dynamolease TestThroughRandomFaultsTheLockIsLinearizable
ROUNDS pkg/lock TestSoakManyLocks
ROUNDS pkg/lock TestSoakAHundredThousandIdleLocksCostNoGoroutines
count pkg/lock TestThroughABadNetworkNoTwoAreEverTrustedAtOnce
endef
export soak

.PHONY: soak
soak: export ROUNDS ?= 20
soak: stores ## the tests that depend on chance, for longer (ROUNDS, 20)
	@while read -r how package test; do \
		if [ $$how = count ]; then count=$$ROUNDS; else count=1; fi; \
		echo "$$package $$test"; \
		go test -race -timeout 2h -count $$count -run "^$$test\$$" -v ./$$package < /dev/null; \
	done <<< "$$soak"

.PHONY: schemathesis
schemathesis: export CASES = 3000
schemathesis: ## 3,000 calls that are made up from the spec, to the service on this machine
	go test -timeout 30m -run Schemathesis -v ./localtest/openapi

.PHONY: model
model: ## search every state of the models of the protocol, ten minutes; writes their table
	@mkdir -p .tools; go run ./pkg/lease/model -long > .tools/model.md || { cat .tools/model.md; exit 1; }
	@mv .tools/model.md pkg/lease/model/RESULTS.md; cat pkg/lease/model/RESULTS.md

.PHONY: fuzz
fuzz: ## each fuzz target for 20 seconds
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func / /' | while read -r file target; do \
		echo "$$file $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime 20s "$$(dirname "$$file")" < /dev/null; \
	done

.PHONY: vulncheck
vulncheck: ## known vulnerabilities in the code that is called, where their database can be reached
	@out=$$(go tool govulncheck ./... 2>&1) || status=$$?; echo "$$out"; \
	case "$$out" in \
	*"fetching vulnerabilities"*) echo "vulncheck: SKIPPED: the database of vulnerabilities cannot be reached from here";; \
	*) exit $${status:-0};; \
	esac
