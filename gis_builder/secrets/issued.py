"""Credentials that bear their issuer's mark, in the shapes that issuers document."""

from __future__ import annotations

from gis_builder.secrets.shape import shape
from gis_builder.secrets.values import looks_keyed, looks_random

_START, _END = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9])"

ISSUED = (
    shape(
        "private_key",
        "private",
        r"""-----BEGIN[^-\n]{0,40}PRIVATE\ KEY[^-\n]{0,10}-----
        (?:(?:[^-]|-(?!----))*+-----END[^-\n]{0,60}-----|(?:(?:\s|\\n)*+[A-Za-z0-9+/=]{16,}+)*+)
        |Private-Lines:[ ]\d{1,4}(?:\r?\n[A-Za-z0-9+/=]{16,100}){1,400}""",
    ),
    shape("private_key", "age-secret-key-1", _START + r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    shape(
        "github",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}",
    ),
    shape(
        "gitlab",
        "glpat- gldt- glrt- glptt- glft- glcbt- glsoat- glimt- gloas- gr1348941",
        _START + r"(?:gl(?:pat|dt|rt|ptt|ft|cbt|soat|imt|oas)-[\w.-]{20,255}|GR1348941[\w-]{20,60})",
    ),
    shape("aws", "akia asia abia acca a3t", rf"{_START}A(?:3T[A-Z0-9]|(?:KI|SI|BI|CC)A)[A-Z0-9]{{16}}{_END}"),
    shape(
        "azure",
        "accountkey= accesskey=",
        r"(?i:(?:account|access)key=)(?P<value>[A-Za-z0-9+/]{40,90}={0,2})",
    ),
    shape("azure", "sig=", r"[?&;]sig=(?P<value>[A-Za-z0-9%+/]{40,120}={0,2})"),
    shape("azure", "8q~", r"(?<![\w.~-])[\w.~-]{3}8Q~[\w.~-]{31,34}"),
    shape(
        "google",
        "aiza ya29. gocspx- 1//0",
        _START + r"(?:AIza[\w-]{35}|ya29\.[\w-]{20,2000}|GOCSPX-[\w-]{20,60}|1//0[\w-]{40,120})",
    ),
    shape(
        "llm",
        "sk- hf_ api_org_ gsk_ r8_ pplx- xai- sess-",
        r"""(?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{20,255}|(?:hf|api_org|gsk|r8)_[A-Za-z0-9]{30,60}
        |(?:pplx|xai|sess)-[A-Za-z0-9]{40,100})""",
        looks_keyed,
    ),
    shape(
        "chat",  # Slack
        "xox xapp-",
        _START + r"(?:xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255})",
    ),
    shape(
        "chat",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[\w/-]{10,120})",
    ),
    # Discord, Telegram, Teams
    shape("chat", "/api/webhooks/", r"/api/webhooks/(?P<value>\d{15,22}/[\w-]{50,100})"),
    shape("chat", ".", r"(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])", looks_random),
    shape("chat", ":aa", r"(?<![0-9])\d{8,10}:AA[\w-]{32,34}(?![\w-])"),
    shape("chat", ".webhook.office.com/", r"\.webhook\.office\.com/(?P<value>[\w@/-]{60,300})"),
    shape(
        "registry",
        "npm_ pypi- rubygems_ dckr_ cio oy2",
        rf"""{_START}(?:npm_[A-Za-z0-9]{{36}}|pypi-[\w-]{{50,255}}|rubygems_[0-9a-f]{{48}}
        |dckr_(?:pat|oat)_[\w-]{{20,60}}|cio[A-Za-z0-9]{{32}}|oy2[a-z0-9]{{43}}){_END}""",
        looks_keyed,
    ),
    shape(
        "service",  # Stripe, SendGrid, Square, DigitalOcean, Shopify, Atlassian, Figma and others
        "k_live_ k_test_ whsec_ sg. sq0 _v1_ shp atatt3 figd_ pmak- sntry glsa_ glc_",
        rf"""{_START}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{{16,255}}|whsec_[A-Za-z0-9+/=]{{24,80}}
        |SG\.[\w-]{{16,64}}\.[\w-]{{16,64}}|sq0(?:atp|csp)-[\w-]{{22,60}}|do[por]_v1_[0-9a-f]{{64}}
        |shp(?:at|ss|ca|pa)_[0-9a-fA-F]{{32}}|ATATT3[\w=-]{{60,300}}|figd_[\w-]{{36,60}}
        |PMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}|sntry[su]_[\w=+/]{{60,300}}|gl(?:sa|c)_[\w=+/]{{32,300}}){_END}""",
        looks_keyed,
    ),
    shape(
        "service",  # New Relic, Databricks, Doppler, Vault, Terraform, PlanetScale, Supabase, Netlify, Linear
        "nrak- dapi dp. hvs. hvb. atlasv1 pscale_ sbp_ nfp_ lin_api_",
        rf"""{_START}(?:NRAK-[A-Z0-9]{{27}}|dapi[0-9a-f]{{32}}(?:-\d)?|dp\.(?:pt|st|ct|sa)\.[\w.-]{{40,80}}
        |hv[sb]\.[\w-]{{24,300}}|[A-Za-z0-9]{{14}}\.atlasv1\.[\w-]{{60,80}}
        |pscale_(?:tkn|pw|oauth)_[\w.=-]{{32,64}}|sbp_[0-9a-f]{{40}}|nfp_[A-Za-z0-9]{{36}}
        |lin_api_[A-Za-z0-9]{{40}}){_END}""",
        looks_keyed,
    ),
    shape(
        "service",  # Notion, Fly, Mailgun, Mailchimp, Alibaba, Facebook, Heroku
        "ntn_ secret_ fm2_ key- -us ltai eaa hrku-",
        rf"""{_START}(?:ntn_[A-Za-z0-9]{{40,60}}|secret_[A-Za-z0-9]{{43}}|fm2_[\w+/=,]{{60,2000}}
        |key-[0-9a-f]{{32}}|[0-9a-f]{{32}}-us\d{{1,2}}|LTAI[A-Za-z0-9]{{12,20}}|EAA[A-Za-z0-9]{{90,250}}
        |HRKU-[\w-]{{36,70}}){_END}""",
        looks_keyed,
    ),
    shape("service", "sk", rf"{_START}SK[0-9a-f]{{32}}{_END}"),  # Twilio
    shape("jwt", "eyj", r"(?<![\w-])eyJ[\w-]{8,4000}\.eyJ[\w-]{8,4000}(?:\.[\w-]{0,4000})?"),
)
