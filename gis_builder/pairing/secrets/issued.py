"""Credentials with a prefix of their issuer, in documented formats."""

from __future__ import annotations

from gis_builder.pairing.secrets.values import shapes

ISSUED = shapes(
    r"""
    private_key
        private
            -----BEGIN[^-\n]{0,40}PRIVATE\ KEY[^-\n]{0,10}-----
            (?:(?:[^-]|-(?!----))*+-----END[^-\n]{0,60}-----|(?:(?:\s|\\n)*+[A-Za-z0-9+/=]{16,}+)*+)
            |Private-Lines:[ ]\d{1,4}(?:\r?\n[A-Za-z0-9+/=]{16,100}){1,400}
        # The same in base64, as in Kubernetes secrets: "-----BEGIN", then not " CER".
        ls0tls1crudjti
            {START}LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURS|BQUklWQVRF|BFQyBQUklWQVRF|BPUEVOU1NI|BFTkNSWVBURUQ
            |BEU0Eg)[A-Za-z0-9+/]{40,20000}={0,2}
        kty
            \\?"[dpq]\\?"\s?:\s?\\?"(?P<value>[\w-]{40,700})
        age-secret-key-1
            {START}AGE-SECRET-KEY-1[A-Z0-9]{58}
    github
        ghp_ gho_ ghu_ ghs_ ghr_ github_pat_
            (?:gh[pousr]|github_pat)_(?![xX]{4})[A-Za-z0-9_]{20,255}
    gitlab
        glpat- gldt- glrt- glptt- glft- glcbt- glsoat- glimt- gloas- glagent- gr1348941
            {START}(?:gl(?:pat|dt|rt|ptt|ft|cbt|soat|imt|oas|agent)-[\w.-]{20,255}|GR1348941[\w-]{20,60})
    aws
        akia asia abia acca a3t
            {START}A(?:3T[A-Z0-9]|(?:KI|SI|BI|CC)A)[A-Z0-9]{16}{END}
        fwogzxivyxdz iqojb3jpz2lu
            (?:FwoGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9+/]{40,2000}={0,2}
        absk amzn.mws.
            {START}(?:ABSK[A-Za-z0-9+/]{60,200}={0,2}|amzn\.mws\.[0-9a-f-]{36})
    azure
        azfu acaaab azdo
            (?<![\w-])[\w-]{30,80}(?:AzFu|ACAAAB|AZDO)[A-Za-z0-9]{4,12}={0,2}
        accountkey= accesskey=
            (?i:(?:account|access)key=)(?P<value>[A-Za-z0-9+/]{40,90}={0,2})
        sig=
            [?&;]sig=(?P<value>[A-Za-z0-9%+/]{40,120}={0,2})
        8q~
            (?<![\w.~-])[\w.~-]{3}8Q~[\w.~-]{31,34}
    google
        aiza ya29. gocspx- 1//0
            {START}(?:AIza[\w-]{35}|ya29\.[\w-]{20,2000}|GOCSPX-[\w-]{20,60}|1//0[\w-]{40,120})
        # Firebase
        apa91b
            (?<![\w-])[\w-]{11}:APA91b[\w-]{100,180}
    llm
        - [looks_keyed]
            {START}(?:lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|tvly-[\w-]{28,60}|pa-[\w-]{40,50}){END}
        sk_ nvapi- pcsk_ fw_ [looks_keyed]
            {START}(?:sk_[0-9a-f]{48}|nvapi-[\w-]{60,80}|pcsk_\w{60,90}|fw_[A-Za-z0-9]{22,30}){END}
        sk- hf_ api_org_ gsk_ r8_ pplx- xai- sess- [looks_keyed]
            (?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{20,255}|(?:hf|api_org|gsk|r8)_[A-Za-z0-9]{30,60}
            |(?:pplx|xai|sess)-[A-Za-z0-9]{40,100})
    chat
        # Slack
        xox xapp-
            {START}(?:xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255})
        hooks.slack.com/
            hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[\w/-]{10,120})
        # Discord, Telegram, Teams
        /api/webhooks/
            /api/webhooks/(?P<value>\d{15,22}/[\w-]{50,100})
        . [looks_random]
            (?<![\w.-])(?:[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}|mfa\.[\w-]{40,100})(?![\w-])
        :aa
            (?<![0-9])\d{8,10}:AA[\w-]{32,34}(?![\w-])
        hook [looks_random]
            /(?:hooks?|webhooks?|incoming)/(?P<value>[A-Za-z0-9_/-]{20,200})
        syt_ tk_ [looks_keyed]
            {START}(?:syt_[A-Za-z0-9]{2,80}_[A-Za-z]{20}_\w{6}|tk_[a-z0-9]{29}){END}
        .webhook.office.com/
            \.webhook\.office\.com/(?P<value>[\w@/-]{60,300})
    registry
        npm_ pypi- rubygems_ dckr_ cio oy2 [looks_keyed]
            {START}(?:npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}|rubygems_[0-9a-f]{48}
            |dckr_(?:pat|oat)_[\w-]{20,60}|cio[A-Za-z0-9]{32}|oy2[a-z0-9]{43}){END}
        # In Docker's and npm's configuration files and conda's links.
        auth
            (?:"auth"\s?:\s?"|\b_auth[ ]?=[ ]?"?)(?P<value>[A-Za-z0-9+/]{12,2000}={0,2})
        npmauth
            npmAuth(?:Token|Ident)["']?:[ ]?["']?(?P<value>[^\s"']{12,400})
        /t/
            /t/(?P<value>[a-z]{2}-[0-9a-f-]{36})/
        akcp cmvmdgtu
            {START}(?:AKCp[A-Za-z0-9]{40,80}|cmVmdGtu[A-Za-z0-9]{50,80})
    service
        # Stripe, SendGrid, Square, DigitalOcean, Shopify, Atlassian, Figma and others
        k_live_ k_test_ whsec_ sg. sq0 _v1_ shp atatt3 figd_ pmak- sntry glsa_ glc_ [looks_keyed]
            {START}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9+/=]{24,80}
            |SG\.[\w-]{16,64}\.[\w-]{16,64}|sq0(?:atp|csp)-[\w-]{22,60}|do[por]_v1_[0-9a-f]{64}
            |shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|ATATT3[\w=-]{60,300}|figd_[\w-]{36,60}
            |PMAK-[0-9a-f]{24}-[0-9a-f]{34}|sntry[su]_[\w=+/]{60,300}|gl(?:sa|c)_[\w=+/]{32,300}){END}
        # New Relic, Databricks, Doppler, Vault, Terraform, PlanetScale, Supabase, Netlify, Linear
        nrak- dapi dp. hvs. hvb. atlasv1 pscale_ sbp_ nfp_ lin_api_ [looks_keyed]
            {START}(?:NRAK-[A-Z0-9]{27}|dapi[0-9a-f]{32}(?:-\d)?|dp\.(?:pt|st|ct|sa)\.[\w.-]{40,80}
            |hv[sb]\.[\w-]{24,300}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}
            |pscale_(?:tkn|pw|oauth)_[\w.=-]{32,64}|sbp_[0-9a-f]{40}|nfp_[A-Za-z0-9]{36}
            |lin_api_[A-Za-z0-9]{40}){END}
        # Notion, Fly, Mailgun, Mailchimp, Alibaba, Facebook, Heroku
        ntn_ secret_ fm2_ key- -us ltai eaa hrku- [looks_keyed]
            {START}(?:ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}|fm2_[\w+/=,]{60,2000}
            |key-[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2}|LTAI[A-Za-z0-9]{12,20}|EAA[A-Za-z0-9]{90,250}
            |HRKU-[\w-]{36,70}){END}
        # Supabase, Airtable, SonarQube, Dropbox, Vault before 1.10, Docker swarm, k3s
        sb_secret_ pat squ_ sqp_ sqa_ sl. s. swmtkn- ::server: [looks_keyed]
            {START}(?:sb_secret_[\w-]{20,60}|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|sq[upa]_[0-9a-f]{40}
            |sl\.[\w-]{60,2000}|s\.[A-Za-z0-9]{24}|SWMTKN-1-[a-z0-9-]{60,90}
            |K10[0-9a-f]{32,80}::\w{1,20}:[0-9a-f]{20,80}){END}
        # Brevo, Pulumi, Render, Contentful, Square, Mapbox
        xkeysib- pul- rnd_ cfpat- eaaa sk.eyj [looks_keyed]
            {START}(?:xkeysib-[0-9a-f]{64}-\w{16}|pul-[0-9a-f]{40}|rnd_[A-Za-z0-9]{24,40}|CFPAT-[\w-]{40,60}
            |EAAA[\w-]{56,64}|sk\.eyJ[\w-]{40,200}\.[\w-]{16,60}){END}
        # kubeadm
        --token
            --token[ =](?P<value>[a-z0-9]{6}\.[a-z0-9]{16})(?![a-z0-9])
        alchemy.com/ infura.io/
            (?:alchemy\.com|infura\.io)/v\d/(?P<value>[\w-]{20,60})
        # Twilio
        sk
            {START}SK[0-9a-f]{32}{END}
        client(
            {START}AC[0-9a-f]{32}["']?[,:]\s{0,20}["']?(?P<value>[0-9a-f]{32}){END}
        # Tailscale, 1Password, Buildkite, Bitbucket, PostHog, Resend, Dynatrace
        tskey- ops_eyj bkua_ atbb phx_ re_ dt0c01. [looks_keyed]
            {START}(?:tskey-[a-z]{2,8}-[\w-]{20,80}|ops_eyJ[\w-]{100,2000}|bkua_[0-9a-f]{40}
            |ATBB[A-Za-z0-9]{32}|phx_\w{40,60}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}
            |dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}){END}
        # Commands whose argument is a key.
        login auth [looks_keyed]
            \b(?:(?:wandb|vault|railway|hf|huggingface-cli)[ ]login|(?:snyk|surge)[ ]auth
            |ngrok[ ](?:config[ ]add-)?authtoken)(?:[ ]--?[\w-]{1,20}){0,3}[ ]["']?(?P<value>[\w.-]{16,255})
    jwt
        # Wrapped over lines; signed (three parts) or encrypted (five, some empty); similar ones.
        eyj
            (?<![\w-])eyJ[\w-]{16,200}+(?:\.[\w-]{0,200}+)?(?:\r?\n[ \t>|]{0,24}[\w.-]{24,200}+)++
            (?:\r?\n[ \t>|]{0,24}(?=[\w.-]{0,200}[0-9])[\w.-]{1,200}+(?=["'`\s]|\Z))?
        eyj
            (?<![\w-])eyJ[\w-]{8,4000}+(?:\.[\w-]{0,4000}+){2,4}
        eyj
            (?<![\w-])eyJpdiI6[\w%+/-]{40,4000}={0,2}
    """,
    {"START": "(?<![A-Za-z0-9_])", "END": "(?![A-Za-z0-9])"},
)
